/** How long a test of `fastsockets perf` lasts, and its samples. */
import { createHistogram } from 'node:perf_hooks'

/** Ends at that time, or at that number of messages. */
export interface Length {
  readonly untilMs: number
  readonly countMin: number
}

/** Round trips or connections; those that begin after the warm-up count. */
export class Span implements Length {
  readonly untilMs: number
  readonly countMin: number
  /** In nanoseconds. */
  readonly histogram = createHistogram()
  readonly #fromMs: number
  #count = 0
  #firstMs = 0
  #lastMs = 0

  constructor(fromMs: number, { untilMs, countMin }: Length) {
    this.#fromMs = fromMs
    this.untilMs = untilMs
    this.countMin = countMin
  }

  get count(): number {
    return this.#count
  }

  /** From the beginning of the first that counts to the end of the last. */
  get seconds(): number {
    return (this.#lastMs - this.#firstMs) / 1000
  }

  /** One that began at `startMs` is complete. Returns whether another shall begin. */
  record(startMs: number): boolean {
    const nowMs = performance.now()
    if (startMs >= this.#fromMs) {
      if (this.#count === 0) this.#firstMs = startMs
      this.#count++
      this.#lastMs = nowMs
      // A histogram has no zero.
      this.histogram.record(Math.max(1, Math.round((nowMs - startMs) * 1e6)))
    }
    return nowMs < this.untilMs || this.#count < this.countMin
  }
}
