import { threadId } from 'node:worker_threads'
import { eventLoop, POLLER_COUNTS } from '../../am/channels.ts'
import { openPage } from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { dateNow } from '../../nic/real-time.ts'
import { moveHits, ownPolicy, ownProgram, policyFailure } from '../policy/own-policy.ts'
import { FALLBACK_REASONS, type FallbackCode } from '../reasons.ts'
import {
  ADDRESS_SIZE,
  BYTES_BUFFERED,
  BYTES_FETCHED,
  BYTES_IN,
  BYTES_OUT,
  COUNTS_LENGTH,
  DATAGRAMS,
  DROPPED,
  HEADER,
  HEADER_SIZE,
  KERNEL_KINDS,
  KINDS,
  type Kind,
  LOCAL_AT,
  PAGE_NAME,
  PAGE_SIZE,
  PEER_FETCHED,
  POLICY_AT,
  POLICY_HITS_COUNT,
  POLICY_SIZE,
  POLICY_STATES,
  PROGRAM_AT,
  PROGRAM_SIZE,
  REMOTE_AT,
  ROLES,
  ROW,
  ROW_SIZE,
  ROWS_MAX,
  STATUS_MAGIC,
  STATUS_VERSION,
  TRANSPORTS,
  ZCOPY_STATES,
  type ZCopyState,
} from './status-layout.ts'

export interface Place {
  readonly address: string
  readonly port: number
}

/** The fields of a row besides its counters. */
interface RowText {
  readonly kind: Kind
  readonly transport: string
  readonly role?: 'client' | 'server'
  readonly reason?: FallbackCode
  readonly zcopy?: ZCopyState
  /** User of a peer in another container. */
  readonly containerUid?: number | undefined
  readonly local?: Place | undefined
  readonly remote?: Place | undefined
}

const CODES = Object.keys(FALLBACK_REASONS)
const NOT_SHOWN = -1
const ASCII_MAX = 0x7f
/** Receives counts of a closed row; never read. */
const DISCARDED = new Float64Array(COUNTS_LENGTH)

export function addTo(counts: Float64Array, word: number, count: number): void {
  counts[word] = (counts[word] as number) + count
}

/** A socket or listener on the page. Its counters are updated in place; without a page they are ordinary memory. */
export class StatusRow {
  /** Valid while the row is open. */
  counts: Float64Array
  readonly #page: StatusPage
  readonly #kind: Kind
  readonly #role: RowText['role']
  #index: number
  #isOpen = true

  constructor(page: StatusPage, { kind, role }: RowText, index: number, counts: Float64Array) {
    this.#page = page
    this.#kind = kind
    this.#role = role
    this.#index = index
    this.counts = counts
  }

  /** True if the row is on the page; false if the page was full, and after `close`. */
  get isShown(): boolean {
    return this.#index !== NOT_SHOWN
  }

  /** Frees the row for others; the page keeps the sums. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#page.keep(this.#kind, this.#role, this.counts)
    this.counts = DISCARDED
    if (!this.isShown) return
    this.#page.release(this.#index)
    this.#index = NOT_SHOWN
  }
}

/** The page of this thread (status-layout.ts). Without shared memory the counts are kept in ordinary memory. */
export class StatusPage {
  readonly #words: Float64Array
  readonly #bytes: Uint8Array
  readonly #rowsMax: number
  readonly #free: number[] = []
  /** Indexed by row: objects that the next socket in the same row reuses. */
  readonly #made: { readonly counts: Float64Array; local: string; remote: string }[] = []
  #rowsUsed = 0

  /** `memory`: `PAGE_SIZE` zero bytes that other processes can read; undefined if there is no such memory. */
  constructor(memory: ArrayBuffer | undefined) {
    this.#rowsMax = memory === undefined ? 0 : ROWS_MAX
    this.#words = new Float64Array(memory ?? new ArrayBuffer(HEADER_SIZE))
    this.#bytes = new Uint8Array(this.#words.buffer)
    this.#words[HEADER.THREAD] = threadId
    this.#words[HEADER.START_MS] = performance.timeOrigin
    this.#putText(PROGRAM_AT, PROGRAM_SIZE, ownProgram())
    eventLoop.moveCounts(this.#words.subarray(HEADER.POLLER, HEADER.POLLER + POLLER_COUNTS.length))
    moveHits(this.#words.subarray(HEADER.POLICY_HITS, HEADER.POLICY_HITS + POLICY_HITS_COUNT))
    this.showPolicy(false)
    this.#words[HEADER.VERSION] = STATUS_VERSION
    // Written last: publishes the rest.
    this.#words[HEADER.MAGIC] = STATUS_MAGIC
  }

  /** `isStale`: the file has changed since, and cannot be used. */
  showPolicy(isStale: boolean): void {
    const { path } = policyFailure() ?? {}
    const { source = path ?? '', version, ruleCount = 0 } = ownPolicy() ?? {}
    const state =
      path !== undefined ? 'invalid' : version === undefined ? 'none' : isStale ? 'stale' : 'in force'
    this.#putText(POLICY_AT, POLICY_SIZE, state === 'none' ? '' : source)
    this.#words[HEADER.POLICY_VERSION] = version === undefined ? 0 : Number.parseInt(version, 16)
    this.#words[HEADER.POLICY_RULES] = ruleCount
    if (!isStale) this.#words[HEADER.POLICY_READ_MS] = dateNow()
    this.#words[HEADER.POLICY_STATE] = POLICY_STATES.indexOf(state)
  }

  /** Counts one socket, whose row is opened later if it still exists. */
  countOpened(): void {
    this.#add(HEADER.OPENED, 1)
  }

  open(text: RowText, isCounted = false): StatusRow {
    if (text.kind !== 'listener' && !isCounted) this.countOpened()
    const index = this.#free.pop() ?? (this.#rowsUsed < this.#rowsMax ? this.#rowsUsed++ : NOT_SHOWN)
    if (index === NOT_SHOWN) return new StatusRow(this, text, NOT_SHOWN, new Float64Array(COUNTS_LENGTH))
    this.#words[HEADER.ROWS_USED] = this.#rowsUsed
    const at = HEADER_SIZE + index * ROW_SIZE
    const row = at / Float64Array.BYTES_PER_ELEMENT
    this.#made[index] ??= { counts: this.#countsOf(row), local: '', remote: '' }
    const made = this.#made[index]
    made.counts.fill(0)
    this.#words[row + ROW.TRANSPORT] = Math.max(0, (TRANSPORTS as readonly string[]).indexOf(text.transport))
    this.#words[row + ROW.REASON] = text.reason === undefined ? 0 : CODES.indexOf(text.reason) + 1
    this.#words[row + ROW.ROLE] = ROLES.indexOf(text.role ?? '')
    this.#words[row + ROW.LOCAL_PORT] = text.local?.port ?? 0
    this.#words[row + ROW.REMOTE_PORT] = text.remote?.port ?? 0
    this.#words[row + ROW.START_MS] = dateNow()
    this.#words[row + ROW.ZCOPY] = text.zcopy === undefined ? 0 : ZCOPY_STATES.indexOf(text.zcopy) + 1
    this.#words[row + ROW.CONTAINER_USER] = text.containerUid === undefined ? 0 : text.containerUid + 1
    const { address: local = '' } = text.local ?? {}
    const { address: remote = '' } = text.remote ?? {}
    if (local !== made.local) this.#putText(at + LOCAL_AT, ADDRESS_SIZE, local)
    if (remote !== made.remote) this.#putText(at + REMOTE_AT, ADDRESS_SIZE, remote)
    made.local = local
    made.remote = remote
    // Written last: publishes the rest.
    this.#words[row + ROW.KIND] = KINDS.indexOf(text.kind)
    return new StatusRow(this, text, index, made.counts)
  }

  #countsOf(row: number): Float64Array {
    return this.#words.subarray(row + ROW.COUNTS, row + ROW.COUNTS + COUNTS_LENGTH)
  }

  release(index: number): void {
    const row = (HEADER_SIZE + index * ROW_SIZE) / Float64Array.BYTES_PER_ELEMENT
    this.#words[row + ROW.KIND] = 0
    this.#free.push(index)
  }

  /** Adds the counts of a closed socket. Sums include sockets without a row from now on. */
  keep(kind: Kind, role: RowText['role'], counts: Float64Array): void {
    if (kind === 'listener' || KERNEL_KINDS.has(kind)) return
    this.#add(HEADER.CLOSED_BYTES_IN, counts[BYTES_IN] as number)
    this.#add(HEADER.CLOSED_BYTES_OUT, counts[BYTES_OUT] as number)
    this.#add(HEADER.CLOSED_BYTES_BUFFERED, counts[BYTES_BUFFERED] as number)
    this.#add(HEADER.CLOSED_BYTES_FETCHED, counts[BYTES_FETCHED] as number)
    this.#add(HEADER.CLOSED_PEER_FETCHED, counts[PEER_FETCHED] as number)
    if (kind !== 'dgram') return
    const isSent = role === 'client'
    this.#add(isSent ? HEADER.CLOSED_DATAGRAMS_OUT : HEADER.CLOSED_DATAGRAMS_IN, counts[DATAGRAMS] as number)
    this.#add(isSent ? HEADER.CLOSED_DROPPED_OUT : HEADER.CLOSED_DROPPED_IN, counts[DROPPED] as number)
  }

  countFallback(code: FallbackCode): void {
    this.#add(HEADER.FALLBACKS + CODES.indexOf(code), 1)
  }

  /** A connection has moved from TCP to the fast way. */
  countPromoted(): void {
    this.#add(HEADER.PROMOTED, 1)
  }

  /** A connection is back on TCP. */
  countDemoted(): void {
    this.#add(HEADER.DEMOTED, 1)
  }

  /** A connection that should move stays on TCP. */
  countRefusal(code: FallbackCode): void {
    this.#add(HEADER.REFUSALS + CODES.indexOf(code), 1)
  }

  /** The header and the rows that were ever used. */
  get image(): Uint8Array {
    return this.#bytes.slice(0, HEADER_SIZE + this.#rowsUsed * ROW_SIZE)
  }

  #add(word: number, count: number): void {
    addTo(this.#words, word, count)
  }

  #putText(at: number, size: number, whole: string): void {
    // Of a path that does not fit, keep the end: it identifies the socket better than the beginning.
    const text = whole.length > size ? `...${whole.slice(3 - size)}` : whole
    const length = Math.min(size, text.length)
    // Fast path for ASCII, such as addresses; other text is longer as bytes.
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i)
      if (code > ASCII_MAX) return this.#putAnyText(at, size, text)
      this.#bytes[at + i] = code
    }
    this.#bytes.fill(0, at + length, at + size)
  }

  #putAnyText(at: number, size: number, text: string): void {
    const bytes = Buffer.from(text)
    this.#bytes.fill(0, at, at + size)
    this.#bytes.set(bytes.subarray(0, size), at)
  }
}

let page: StatusPage | undefined

/** Made on first use. */
export function statusPage(): StatusPage {
  page ??= new StatusPage(openPage(PAGE_NAME, PAGE_SIZE))
  return page
}
