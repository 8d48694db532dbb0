/** How long to wait before the next try: twice as long each time, with jitter against simultaneous retries. */
const FIRST_MS = 25
/** Longest pause, so that a daemon that returns is found within this time. */
const LAST_MS = 500

export class Backoff {
  readonly #random: () => number
  #nextMs = FIRST_MS

  /** `random`: from 0 up to, not including, 1. */
  constructor(random: () => number) {
    this.#random = random
  }

  nextMs(): number {
    const delayMs = this.#nextMs * (0.5 + this.#random() / 2)
    this.#nextMs = Math.min(this.#nextMs * 2, LAST_MS)
    return delayMs
  }

  reset(): void {
    this.#nextMs = FIRST_MS
  }
}
