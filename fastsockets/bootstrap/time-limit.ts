/** One limit for all steps of something: none may take more than the ones before have left. */
export class TimeLimit {
  readonly #endMs: number

  /** Infinity is no limit. */
  constructor(limitMs: number) {
    this.#endMs = performance.now() + limitMs
  }

  get leftMs(): number {
    return Math.max(this.#endMs - performance.now(), 0)
  }

  /** Timers are early, by less than a millisecond. */
  get isOver(): boolean {
    return this.leftMs < 1
  }
}
