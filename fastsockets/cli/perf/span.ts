/** How long a test of `fastsockets perf` lasts, and its samples. */
import { createHistogram } from 'node:perf_hooks'

/** A test ends after both `untilMs` (by `performance.now()`) and `countMin` operations. */
export interface Length {
  readonly untilMs: number
  readonly countMin: number
}

/** Records round trips or connections. Those that begin before the end of the warm-up are not counted. */
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

  /** From the start of the first counted operation to the end of the last. */
  get seconds(): number {
    return (this.#lastMs - this.#firstMs) / 1000
  }

  /** Records the completion of an operation that began at `startMs`. True if the caller must begin another one. */
  record(startMs: number): boolean {
    const nowMs = performance.now()
    if (startMs >= this.#fromMs) {
      if (this.#count === 0) this.#firstMs = startMs
      this.#count++
      this.#lastMs = nowMs
      // Node's histogram refuses 0.
      this.histogram.record(Math.max(1, Math.round((nowMs - startMs) * 1e6)))
    }
    return nowMs < this.untilMs || this.#count < this.countMin
  }
}
