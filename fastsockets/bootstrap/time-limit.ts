/** One limit for all steps of something: none may take more than the ones before have left. */
import { performance } from '../../nic/real-time.ts'

export class TimeLimit {
  readonly #endMs: number

  /** Infinity is no limit. */
  constructor(limitMs: number) {
    this.#endMs = performance.now() + limitMs
  }

  /** Whole milliseconds, as timers take them. */
  get leftMs(): number {
    return Math.max(Math.ceil(this.#endMs - performance.now()), 0)
  }

  /** Timers may be early by less than a millisecond. */
  get isOver(): boolean {
    return this.leftMs <= 1
  }
}
