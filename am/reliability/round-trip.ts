/** A time-out is never shorter: less than this a sleeping or preempted peer takes its time anyway. */
const TIMEOUT_MS_MIN = 1
const TIMEOUT_MS_MAX = 250
/** Before anything was measured. */
const TIMEOUT_MS_INITIAL = 10

/** How long to wait for an acknowledgement (RFC 6298, with limits for networks of one machine room). */
export class RoundTrip {
  #smoothedMs = Number.NaN
  #variationMs = 0
  #factor = 1

  get timeoutMs(): number {
    const timeoutMs = Number.isNaN(this.#smoothedMs)
      ? TIMEOUT_MS_INITIAL
      : Math.max(TIMEOUT_MS_MIN, this.#smoothedMs + 4 * this.#variationMs)
    return Math.min(TIMEOUT_MS_MAX, this.#factor * timeoutMs)
  }

  handleSample(roundTripMs: number): void {
    if (Number.isNaN(this.#smoothedMs)) {
      this.#smoothedMs = roundTripMs
      this.#variationMs = roundTripMs / 2
      return
    }
    this.#variationMs += (Math.abs(this.#smoothedMs - roundTripMs) - this.#variationMs) / 4
    this.#smoothedMs += (roundTripMs - this.#smoothedMs) / 8
  }

  /** A time-out has passed in vain. */
  backOff(): void {
    if (this.timeoutMs < TIMEOUT_MS_MAX) this.#factor *= 2
  }

  /** The peer has acknowledged something new. */
  recover(): void {
    this.#factor = 1
  }
}
