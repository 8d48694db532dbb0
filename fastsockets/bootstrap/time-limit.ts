/** One time limit for several steps: each step may use the time that the steps before it have left. */
import { type Clock, realClock } from '../../nic/clock.ts'

export class TimeLimit {
  readonly #clock: Clock
  readonly #endMs: number

  /** Infinity: no limit. */
  constructor(limitMs: number, clock = realClock) {
    this.#clock = clock
    this.#endMs = clock.now() + limitMs
  }

  /** Whole milliseconds, rounded up, for `setTimeout`. */
  get leftMs(): number {
    return Math.max(Math.ceil(this.#endMs - this.#clock.now()), 0)
  }

  /** Up to 1 ms early, because timers may be early by less than a millisecond. */
  get isOver(): boolean {
    return this.leftMs <= 1
  }
}
