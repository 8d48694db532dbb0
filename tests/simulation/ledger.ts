/**
 * What every message of a simulation must become: its handler runs exactly once, or it comes back with a reason; both only
 * if its receiver has died or closed. A broken rule throws a `Broken`.
 */
import { FaultRandom } from '../../nic/fault/fault-random.ts'

export class Broken extends Error {}

/** Longest payload. */
export const PAYLOAD_MAX = 1 << 20

export type Kind = 'short' | 'medium' | 'long' | 'get' | 'call'

export interface Entry {
  readonly id: number
  readonly kind: Kind
  readonly from: number
  readonly to: number
  readonly length: number
  readonly wantsReply: boolean
  /** How often the handler ran, the reply came, and the message came back. */
  runs: number
  replies: number
  returns: number
}

export class Ledger {
  readonly entries: Entry[] = []
  /** Processes, by number, that died or closed: what was under way to them may come back although it was handled. */
  readonly gone = new Set<number>()
  /** Messages that were handled, replies too, and those that came back. */
  finished = 0
  /** All before it are finished, or no process waits for them any more. */
  #settledCount = 0

  open(kind: Kind, from: number, to: number, length: number, wantsReply: boolean): Entry {
    const id = this.entries.length
    const entry = { id, kind, from, to, length, wantsReply, runs: 0, replies: 0, returns: 0 }
    this.entries.push(entry)
    return entry
  }

  /** The request was refused: it was never sent. */
  withdraw(entry: Entry): void {
    if (this.entries.pop() !== entry) throw new Error('only the last message can be withdrawn')
  }

  find(id: number, kinds: readonly Kind[]): Entry {
    const entry = this.entries[id]
    if (entry === undefined || !kinds.includes(entry.kind))
      throw new Broken(`message ${id} arrived as ${kinds.join(' or ')}, and was sent as ${entry?.kind}`)
    return entry
  }

  noteRun(entry: Entry, at: number): void {
    if (++entry.runs > 1) throw new Broken(`the handler of ${describe(entry)} ran twice`)
    if (entry.to !== at) throw new Broken(`${describe(entry)} arrived at process ${at}`)
    if (!this.#isCutOff(entry) && entry.returns > 0)
      throw new Broken(`${describe(entry)} was handled after it had come back`)
    this.finished++
  }

  noteReply(entry: Entry): void {
    if (++entry.replies > 1) throw new Broken(`${describe(entry)} was answered twice`)
    if (entry.kind !== 'get' && entry.runs === 0)
      throw new Broken(`${describe(entry)} was answered before it was handled`)
    this.finished++
  }

  noteReturn(entry: Entry, reason: string | undefined): void {
    if (reason === undefined) throw new Broken(`${describe(entry)} came back without a reason`)
    if (++entry.returns > 1) throw new Broken(`${describe(entry)} came back twice`)
    if (!this.#isCutOff(entry))
      throw new Broken(`${describe(entry)} came back (${reason}) from a living peer`)
    this.finished++
  }

  /** A process whose NIC has died lives on without peers. */
  #isCutOff({ from, to }: Entry): boolean {
    return this.gone.has(from) || this.gone.has(to)
  }

  isFinished({ returns, replies, runs, wantsReply }: Entry): boolean {
    return returns > 0 || (wantsReply ? replies : runs) > 0
  }

  /** Messages between living processes that are not finished. */
  unfinished(): Entry[] {
    const isOver = (entry: Entry): boolean => this.gone.has(entry.from) || this.isFinished(entry)
    for (let next = this.entries[this.#settledCount]; next && isOver(next); )
      next = this.entries[++this.#settledCount]
    return this.entries.slice(this.#settledCount).filter(entry => !isOver(entry))
  }
}

export function describe({ kind, id, from, to, length }: Entry): string {
  return `${kind} message ${id} of ${length} bytes from process ${from} to ${to}`
}

/** Random bytes, again and again. A prime: no offset that is wrong by a power of two finds the same bytes. */
const PERIOD = 4093
const PATTERN = patternOf(PERIOD + PAYLOAD_MAX)

function patternOf(length: number): Buffer {
  const random = new FaultRandom(1)
  const period = Uint8Array.from({ length: PERIOD }, () => random.word())
  const pattern = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; at += PERIOD) pattern.set(period.subarray(0, length - at), at)
  return pattern
}

/** `length` bytes of the content of stream `id`, from offset `from` on. Shared memory: callers only read it. */
export function payloadOf(id: number, length: number, from = 0): Buffer {
  const at = (id * 31 + from) % PERIOD
  return PATTERN.subarray(at, at + length)
}

/** Index of the first byte that is not that of `payloadOf`; -1 if all are. */
export function findDifference(id: number, bytes: Uint8Array, from = 0): number {
  const expected = payloadOf(id, bytes.length, from)
  return expected.equals(bytes) ? -1 : expected.findIndex((byte, i) => byte !== bytes[i])
}

export function checkPayload(entry: Entry, bytes: Uint8Array, of = entry.id): void {
  const at = bytes.length < entry.length ? bytes.length : findDifference(of, bytes.subarray(0, entry.length))
  if (at >= 0) throw new Broken(`byte ${at} of ${describe(entry)} is another`)
}
