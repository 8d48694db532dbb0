/** Counts bytes, and the time since the ASK: the first bytes are a large part of a short stream. */
import type { Total } from './perf-layout.ts'

export class StopWatch {
  readonly #startMs = performance.now()
  #bytes = 0

  count(length: number): void {
    this.#bytes += length
  }

  total(): Total {
    return { bytes: this.#bytes, seconds: (performance.now() - this.#startMs) / 1000 }
  }
}
