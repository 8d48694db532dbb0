/** Shortest time-out: a sleeping or preempted peer needs that long anyway. */
const TIMEOUT_MS_MIN = 1
const TIMEOUT_MS_MAX = 250
/** Time-out before a round trip was measured. */
const TIMEOUT_MS_INITIAL = 10
/** A time-out in round trips. */
const TIMEOUT_ROUND_TRIPS = 2
const SAMPLE_COUNT = 8

/**
 * How long to wait for an acknowledgement: twice the shortest of the last samples. Not the smoothed round trip of RFC
 * 6298: where acknowledgements are lost, samples contain the time-outs of both sides, and time-outs made of such samples
 * grow without bound. A time-out that comes too early costs two frames, and the next is longer.
 */
export class RoundTrip {
  readonly #samplesMs = new Float64Array(SAMPLE_COUNT).fill(Number.POSITIVE_INFINITY)
  #nextSample = 0
  #timeoutMs = TIMEOUT_MS_INITIAL
  #factor = 1

  get timeoutMs(): number {
    return Math.min(TIMEOUT_MS_MAX, this.#factor * this.#timeoutMs)
  }

  handleSample(roundTripMs: number): void {
    this.#samplesMs[this.#nextSample] = roundTripMs
    this.#nextSample = (this.#nextSample + 1) % SAMPLE_COUNT
    let leastMs = roundTripMs
    for (let i = 0; i < SAMPLE_COUNT; i++) leastMs = Math.min(leastMs, this.#samplesMs[i] as number)
    this.#timeoutMs = Math.max(TIMEOUT_MS_MIN, TIMEOUT_ROUND_TRIPS * leastMs)
  }

  /** A time-out passed without news: the next is longer. */
  backOff(): void {
    if (this.timeoutMs < TIMEOUT_MS_MAX) this.#factor *= 2
  }

  /** The peer has acknowledged a new frame. */
  recover(): void {
    this.#factor = 1
  }
}
