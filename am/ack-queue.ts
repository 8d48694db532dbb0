import { ablation } from '../nic/index.ts'
import { encodeRun } from './message-layout.ts'

/** See nic/ablation.ts. */
const DELAYS_ACKS = ablation('no-delayed-acks') === undefined

const FREE = 0
const HANDLING = 1
const DONE = 2

/**
 * The receiver's half of the credits: the peer's slots that we have done with and not given back yet, as runs of
 * consecutive slots. The peer uses its slots in a circle, so that as long as requests are done with in the order in
 * which they came, one run says it all.
 */
export class AckQueue {
  readonly #size: number
  readonly #states: Uint8Array
  readonly #firsts: Uint16Array
  readonly #counts: Uint16Array
  #head = 0
  #runCount = 0
  #pending = 0

  constructor(size: number) {
    this.#size = size
    this.#states = new Uint8Array(size)
    this.#firsts = new Uint16Array(size)
    this.#counts = new Uint16Array(size)
  }

  /** Slots that wait to be given back. */
  get pending(): number {
    return this.#pending
  }

  /** Half of the credits wait to be given back: they go alone, if nothing goes that they could ride on. */
  areDue(creditCount: number): boolean {
    return DELAYS_ACKS ? this.#pending * 2 >= creditCount : this.#pending > 0
  }

  /** A request of the peer begins; false if its slot is not the peer's to use. */
  begin(slot: number): boolean {
    if (this.#states[slot] !== FREE) return false
    this.#states[slot] = HANDLING
    return true
  }

  /** The request was answered, and the answer gives the slot back. */
  answer(slot: number): void {
    this.#states[slot] = FREE
  }

  /** The request is done with and there was no answer. */
  add(slot: number): void {
    this.#states[slot] = DONE
    this.#pending++
    if (this.#runCount > 0) {
      const last = this.#wrap(this.#head + this.#runCount - 1)
      if (this.#wrap((this.#firsts[last] as number) + (this.#counts[last] as number)) === slot) {
        this.#counts[last] = (this.#counts[last] as number) + 1
        return
      }
    }
    const at = this.#wrap(this.#head + this.#runCount)
    this.#firsts[at] = slot
    this.#counts[at] = 1
    this.#runCount++
  }

  /** The oldest run, encoded for the wire, which the peer may use again from now on; 0 if there is none. */
  takeRun(): number {
    if (this.#runCount === 0) return 0
    const first = this.#firsts[this.#head] as number
    const count = this.#counts[this.#head] as number
    this.#head = this.#wrap(this.#head + 1)
    this.#runCount--
    this.#pending -= count
    for (let i = 0; i < count; i++) this.#states[this.#wrap(first + i)] = FREE
    return encodeRun(first, count)
  }

  /** Up to `limit` runs, to `words` from index `at`; returns how many. */
  takeRuns(words: Int32Array, at: number, limit: number): number {
    let count = 0
    for (; count < limit && this.#runCount > 0; count++) words[at + count] = this.takeRun()
    return count
  }

  #wrap(index: number): number {
    return index >= this.#size ? index - this.#size : index
  }
}
