import { POLLER_COUNTS } from '../../am/channels.ts'
import { shownText } from '../../nic/shown-text.ts'
import { FALLBACK_REASONS } from '../reasons.ts'
import {
  ACCEPTED_FAST,
  ACCEPTED_TCP,
  ADDRESS_SIZE,
  BYTES_BUFFERED,
  BYTES_FETCHED,
  BYTES_IN,
  BYTES_OUT,
  BYTES_TAKEN,
  BYTES_WAITING,
  DATAGRAMS,
  DROPPED,
  HEADER,
  HEADER_SIZE,
  KERNEL_KINDS,
  KINDS,
  LISTENER_STATE,
  LOCAL_AT,
  PEER_FETCHED,
  PEER_TAKEN,
  PEER_WINDOW,
  POLICY_AT,
  POLICY_HITS_COUNT,
  POLICY_SIZE,
  POLICY_STATES,
  PROGRAM_AT,
  PROGRAM_SIZE,
  REFUSED_TCP,
  REMOTE_AT,
  ROLES,
  ROW,
  ROW_SIZE,
  ROWS_MAX,
  STATUS_MAGIC,
  STATUS_VERSION,
  STREAM_STATE,
  STREAM_STATES,
  TRANSPORTS,
  ZCOPY_STATES,
} from './status-layout.ts'

const WORD_SIZE = Float64Array.BYTES_PER_ELEMENT
const CODES = Object.keys(FALLBACK_REASONS)

/** The process at the other end of a connection. */
export interface PeerProcess {
  readonly pid: number
  /** Undefined for a process that is not relinked. */
  readonly thread?: number
  /** The path of its program, or the beginning of its command line. */
  readonly program: string
  readonly uid: number
}

export interface SocketStatus {
  /** The socket's row. `row` and `startMs` together identify a socket of the thread. */
  readonly row: number
  readonly startMs: number
  /** `net`, `raw`, `dgram` if it is fast, `tcp` or `udp` if it is the kernel's (status-layout.ts). */
  readonly kind: string
  readonly transport: string
  readonly role: string
  /** Why it is not fast, if it is not. */
  readonly reason?: string
  readonly local: string
  readonly remote: string
  /** Of `tcp`: updated once a second. Of `udp`: 0, since the kernel does not count them. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** The process at the other end, if it is on this host and may be inspected. */
  readonly peer?: PeerProcess
  /** The peer is in another container: its user, by this user namespace. It has no process number that means anything here. */
  readonly container?: { readonly uid: number }
  /** Of one direction of a pair of UDP sockets: what it has sent or delivered, and dropped because the receiver's socket was full. */
  readonly datagrams?: number
  readonly dropped?: number
  // The rest is known of fast sockets only; for TCP the kernel has it (`ss -ti`).
  /**
   * As `ss` has it: `ESTAB`; `FIN-WAIT`, ended by this program; `CLOSE-WAIT`, ended by the peer; `CLOSING`, by
   * both.
   */
  readonly state?: string
  /** Bytes received that the program has not taken. */
  readonly recvQueue?: number
  /** Bytes written that wait here, or that the peer's program has not taken as far as is known. */
  readonly sendQueue?: number
  /** Bytes that the program has taken, and that the peer's program has reported as taken. */
  readonly bytesTaken?: number
  readonly bytesTakenByPeer?: number
  /** Bytes that may still be sent before the peer's program takes any. */
  readonly creditLeft?: number
  /** Of the bytes received, the share that found a receive posted and skipped the receive buffer; 0 to 1. */
  readonly directShare?: number
  /** Whether large writes may be fetched from the writer's memory: `possible`, or `refused` by the system. */
  readonly zcopy?: string
  /** Bytes received and sent by fetching, of the bytes received and sent. */
  readonly zcopyBytesIn?: number
  readonly zcopyBytesOut?: number
}

export interface ListenerStatus {
  readonly row: number
  readonly startMs: number
  readonly state: string
  readonly local: string
  /** Undefined if the listener has no hashed port (then there is a reason), or listens on a unix path. */
  readonly hashedPort?: number
  readonly reason?: string
  readonly acceptedFast: number
  readonly acceptedTcp: number
  /** Connections over TCP that were reset because the policy requires the fast way. */
  readonly refusedTcp: number
}

/** The policy that a thread has. */
export interface PolicyStatus {
  readonly file: string
  /** `in force`; `invalid`: nothing is fast; `stale`: the file has changed and is invalid, and the version before is in force. */
  readonly state: string
  /** Of the one in force: the first 12 digits of the SHA-256 of its file. Undefined if there has been no good one. */
  readonly version?: string
  readonly readMs: number
  readonly ruleCount: number
  /** Decisions since it was read, by the number of the rule, or `default`; `63+` is all from the 63rd on. */
  readonly hits: Readonly<Record<string, number>>
}

/** One thread of a relinked process. */
export interface ThreadStatus {
  readonly thread: number
  readonly startMs: number
  readonly program: string
  /** Undefined without a policy file. */
  readonly policy?: PolicyStatus
  /** False in the first phase: its sockets are Node's own, and only what the kernel says of them is known (light-thread.ts). */
  readonly isLoaded: boolean
  readonly sockets: readonly SocketStatus[]
  readonly listeners: readonly ListenerStatus[]
  readonly opened: number
  /** Bytes of all fast sockets since the start. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** Of those bytes, the ones that were fetched from the writer's memory. */
  readonly zcopyBytesIn: number
  readonly zcopyBytesOut: number
  /** Datagrams of UDP sockets that did not take the kernel's road since the start, and those of them that were dropped here. */
  readonly datagramsIn: number
  readonly datagramsOut: number
  readonly droppedIn: number
  readonly droppedOut: number
  readonly fallbacks: Readonly<Record<string, number>>
  /** Connections that have moved from TCP to the fast way, and back. */
  readonly promoted: number
  readonly demoted: number
  /** Moves that were refused, or for which no channel was found. */
  readonly refusals: Readonly<Record<string, number>>
  /** `turns`, `messages`, `emptyTurns` (spins), `sleeps`, `doorbells`. */
  readonly poller: Readonly<Record<string, number>>
}

export interface ProcessStatus extends ThreadStatus {
  readonly pid: number
  /** The effective user id. */
  readonly uid: number
}

/** The validated contents of a status page; undefined for anything but a page of a known version. */
export function decodeStatus(page: Uint8Array): ThreadStatus | undefined {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength)
  if (page.length < HEADER_SIZE) return undefined
  const header = (word: number): number => finite(view.getFloat64(word * WORD_SIZE, true))
  if (header(HEADER.MAGIC) !== STATUS_MAGIC || header(HEADER.VERSION) !== STATUS_VERSION) return undefined
  const sockets: SocketStatus[] = []
  const listeners: ListenerStatus[] = []
  const rowsThere = Math.floor((page.length - HEADER_SIZE) / ROW_SIZE)
  const rows = Math.min(header(HEADER.ROWS_USED), ROWS_MAX, rowsThere)
  for (let row = 0; row < rows; row++) {
    const at = HEADER_SIZE + row * ROW_SIZE
    const kind = KINDS[finite(view.getFloat64(at, true))]
    if (kind === 'listener') listeners.push(decodeListener(view, at, row))
    else if (kind !== undefined && kind !== 'free') sockets.push(decodeSocket(view, at, row, kind))
  }
  const sum = (of: (socket: SocketStatus) => number | undefined): number =>
    sockets.reduce((total, socket) => total + ((!KERNEL_KINDS.has(socket.kind) && of(socket)) || 0), 0)
  const sumOf = (role: string, of: (socket: SocketStatus) => number | undefined): number =>
    sum(socket => (socket.role === role ? of(socket) : 0))
  const policy = decodePolicy(view)
  const countsFrom = (word: number): Record<string, number> =>
    Object.fromEntries(
      CODES.map((code, i) => [code, header(word + i)] as const).filter(([, count]) => count > 0),
    )
  return {
    thread: header(HEADER.THREAD),
    startMs: header(HEADER.START_MS),
    program: textAt(view, PROGRAM_AT, PROGRAM_SIZE),
    ...(policy && { policy }),
    isLoaded: true,
    sockets,
    listeners,
    opened: header(HEADER.OPENED),
    bytesIn: header(HEADER.CLOSED_BYTES_IN) + sum(socket => socket.bytesIn),
    bytesOut: header(HEADER.CLOSED_BYTES_OUT) + sum(socket => socket.bytesOut),
    zcopyBytesIn: header(HEADER.CLOSED_BYTES_FETCHED) + sum(socket => socket.zcopyBytesIn),
    zcopyBytesOut: header(HEADER.CLOSED_PEER_FETCHED) + sum(socket => socket.zcopyBytesOut),
    datagramsIn: header(HEADER.CLOSED_DATAGRAMS_IN) + sumOf('server', socket => socket.datagrams),
    datagramsOut: header(HEADER.CLOSED_DATAGRAMS_OUT) + sumOf('client', socket => socket.datagrams),
    droppedIn: header(HEADER.CLOSED_DROPPED_IN) + sumOf('server', socket => socket.dropped),
    droppedOut: header(HEADER.CLOSED_DROPPED_OUT) + sumOf('client', socket => socket.dropped),
    fallbacks: countsFrom(HEADER.FALLBACKS),
    promoted: header(HEADER.PROMOTED),
    demoted: header(HEADER.DEMOTED),
    refusals: countsFrom(HEADER.REFUSALS),
    poller: Object.fromEntries(POLLER_COUNTS.map((name, i) => [name, header(HEADER.POLLER + i)])),
  }
}

function decodePolicy(view: DataView): PolicyStatus | undefined {
  const word = (at: number): number => wordAt(view, 0, at)
  const state = POLICY_STATES[word(HEADER.POLICY_STATE)]
  if (state === undefined || state === 'none') return undefined
  const version = Math.min(Math.max(0, Math.floor(word(HEADER.POLICY_VERSION))), 0xffff_ffff_ffff)
  const hits: Record<string, number> = {}
  for (let rule = 0; rule < POLICY_HITS_COUNT; rule++) {
    const count = word(HEADER.POLICY_HITS + rule)
    if (count > 0) hits[rule === 0 ? 'default' : rule === POLICY_HITS_COUNT - 1 ? `${rule}+` : rule] = count
  }
  return {
    file: textAt(view, POLICY_AT, POLICY_SIZE),
    state,
    ...(version > 0 && { version: version.toString(16).padStart(12, '0') }),
    readMs: word(HEADER.POLICY_READ_MS),
    ruleCount: word(HEADER.POLICY_RULES),
    hits,
  }
}

function decodeSocket(view: DataView, at: number, row: number, kind: string): SocketStatus {
  const reason = reasonAt(view, at)
  return {
    row,
    startMs: wordAt(view, at, ROW.START_MS),
    kind,
    transport: TRANSPORTS[wordAt(view, at, ROW.TRANSPORT)] ?? '',
    role: ROLES[wordAt(view, at, ROW.ROLE)] ?? '',
    ...(reason === undefined ? {} : { reason }),
    local: placeAt(view, at + LOCAL_AT, wordAt(view, at, ROW.LOCAL_PORT)),
    remote: placeAt(view, at + REMOTE_AT, wordAt(view, at, ROW.REMOTE_PORT)),
    bytesIn: wordAt(view, at, ROW.COUNTS + BYTES_IN),
    bytesOut: wordAt(view, at, ROW.COUNTS + BYTES_OUT),
    ...(KERNEL_KINDS.has(kind) ? {} : decodeCounts(view, at)),
    ...(kind === 'dgram' ? decodeDatagrams(view, at) : {}),
  }
}

function decodeCounts(view: DataView, at: number): Partial<SocketStatus> {
  const count = (offset: number): number => wordAt(view, at, ROW.COUNTS + offset)
  const bytesIn = count(BYTES_IN)
  const bytesOut = count(BYTES_OUT)
  const zcopy = ZCOPY_STATES[wordAt(view, at, ROW.ZCOPY) - 1]
  const state = STREAM_STATES[count(STREAM_STATE)]
  const containerUser = wordAt(view, at, ROW.CONTAINER_USER)
  return {
    ...(containerUser > 0 ? { container: { uid: containerUser - 1 } } : {}),
    ...(state === undefined ? {} : { state }),
    recvQueue: Math.max(0, bytesIn - count(BYTES_TAKEN)),
    sendQueue: Math.max(0, bytesOut - count(PEER_TAKEN)) + count(BYTES_WAITING),
    bytesTaken: count(BYTES_TAKEN),
    bytesTakenByPeer: count(PEER_TAKEN),
    creditLeft: Math.max(0, count(PEER_WINDOW) - (bytesOut - count(PEER_TAKEN))),
    directShare: bytesIn === 0 ? 1 : Math.max(0, 1 - count(BYTES_BUFFERED) / bytesIn),
    ...(zcopy === undefined ? {} : { zcopy }),
    zcopyBytesIn: count(BYTES_FETCHED),
    zcopyBytesOut: count(PEER_FETCHED),
  }
}

function decodeDatagrams(view: DataView, at: number): Partial<SocketStatus> {
  return {
    datagrams: wordAt(view, at, ROW.COUNTS + DATAGRAMS),
    dropped: wordAt(view, at, ROW.COUNTS + DROPPED),
  }
}

function decodeListener(view: DataView, at: number, row: number): ListenerStatus {
  const reason = reasonAt(view, at)
  const hashedPort = wordAt(view, at, ROW.REMOTE_PORT)
  return {
    row,
    startMs: wordAt(view, at, ROW.START_MS),
    state: LISTENER_STATE,
    local: placeAt(view, at + LOCAL_AT, wordAt(view, at, ROW.LOCAL_PORT)),
    ...(hashedPort === 0 ? {} : { hashedPort }),
    ...(reason === undefined ? {} : { reason }),
    acceptedFast: wordAt(view, at, ROW.COUNTS + ACCEPTED_FAST),
    acceptedTcp: wordAt(view, at, ROW.COUNTS + ACCEPTED_TCP),
    refusedTcp: wordAt(view, at, ROW.COUNTS + REFUSED_TCP),
  }
}

function reasonAt(view: DataView, at: number): string | undefined {
  return CODES[wordAt(view, at, ROW.REASON) - 1]
}

function placeAt(view: DataView, at: number, port: number): string {
  const address = textAt(view, at, ADDRESS_SIZE)
  if (address === '') return ''
  if (port === 0) return address
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/**
 * Decodes up to the first zero, and replaces each terminal control, which only a damaged page has, by one character.
 */
function textAt(view: DataView, at: number, size: number): string {
  const bytes = Buffer.from(view.buffer as ArrayBuffer, view.byteOffset + at, size)
  const end = bytes.indexOf(0)
  return shownText(bytes.toString('utf8', 0, end < 0 ? size : end).replace(/\p{Cc}/gu, '?'))
}

function wordAt(view: DataView, at: number, word: number): number {
  return finite(view.getFloat64(at + word * WORD_SIZE, true))
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0
}
