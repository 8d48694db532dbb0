/** What came, and how long it took from the first byte on. */
import type { Total } from './perf-layout.ts'

export class StopWatch {
  #bytes = 0
  #startMs = 0

  count(length: number): void {
    if (this.#bytes === 0) this.#startMs = performance.now()
    this.#bytes += length
  }

  total(): Total {
    return { bytes: this.#bytes, seconds: (performance.now() - this.#startMs) / 1000 }
  }
}
