import { ablation } from '../nic/index.ts'
import { encodeRun } from './message-layout.ts'

/** See nic/ablation.ts. */
const DELAYS_ACKS = ablation('no-delayed-acks') === undefined

const FREE = 0
const HANDLING = 1
const DONE = 2

/**
 * The receiver's half of the credits: slots of the peer whose requests are finished and that are not given back
 * yet, as runs of consecutive slots. The peer uses its slots in a circle, so one run is enough while requests
 * finish in their order of arrival.
 */
export class AckQueue {
  private readonly size: number
  private readonly states: Uint8Array
  private readonly firsts: Uint16Array
  private readonly counts: Uint16Array
  private head = 0
  private runCount = 0
  /** Slots that are not given back yet. */
  pending = 0

  constructor(size: number) {
    this.size = size
    this.states = new Uint8Array(size)
    this.firsts = new Uint16Array(size)
    this.counts = new Uint16Array(size)
  }

  /**
   * True if half of the credits wait to be given back. They then go in a frame of their own, unless another frame
   * carries them.
   */
  areDue(creditCount: number): boolean {
    return DELAYS_ACKS ? this.pending * 2 >= creditCount : this.pending > 0
  }

  /** Begins a request of the peer. False if the peer may not use that slot. */
  begin(slot: number): boolean {
    if (this.states[slot] !== FREE) return false
    this.states[slot] = HANDLING
    return true
  }

  /** The answer to the request gives the slot back. */
  answer(slot: number): void {
    this.states[slot] = FREE
  }

  /** The request has finished without an answer. */
  add(slot: number): void {
    this.states[slot] = DONE
    this.pending++
    if (this.runCount > 0) {
      const last = this.wrap(this.head + this.runCount - 1)
      if (this.wrap((this.firsts[last] as number) + (this.counts[last] as number)) === slot) {
        this.counts[last] = (this.counts[last] as number) + 1
        return
      }
    }
    const at = this.wrap(this.head + this.runCount)
    this.firsts[at] = slot
    this.counts[at] = 1
    this.runCount++
  }

  /** Takes the oldest run, encoded for the wire; the peer may use its slots again. 0 if there is none. */
  dequeueRun(): number {
    if (this.runCount === 0) return 0
    const first = this.firsts[this.head] as number
    const count = this.counts[this.head] as number
    this.head = this.wrap(this.head + 1)
    this.runCount--
    this.pending -= count
    for (let i = 0; i < count; i++) this.states[this.wrap(first + i)] = FREE
    return encodeRun(first, count)
  }

  /** Writes up to `limit` runs to `words` from index `at`; returns how many. */
  dequeueRuns(words: Int32Array, at: number, limit: number): number {
    let count = 0
    for (; count < limit && this.runCount > 0; count++) words[at + count] = this.dequeueRun()
    return count
  }

  private wrap(index: number): number {
    return index >= this.size ? index - this.size : index
  }
}
