/** How long to wait before the next try: twice as long each time, and not at the same moment as everybody else. */
const FIRST_MS = 25
/** A daemon that is back is found within this time. */
const LAST_MS = 500

export class Backoff {
  #nextMs = FIRST_MS

  nextMs(): number {
    const delayMs = this.#nextMs * (0.5 + Math.random() / 2)
    this.#nextMs = Math.min(this.#nextMs * 2, LAST_MS)
    return delayMs
  }

  reset(): void {
    this.#nextMs = FIRST_MS
  }
}
