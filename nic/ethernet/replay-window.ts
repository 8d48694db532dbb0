/** Which nonces of the peer have come: each frame counts once (as RFC 4303, section 3.4.3, and RFC 6479). */
const WINDOW = 1024
const WORDS = (2 * WINDOW) / 32

export class ReplayWindow {
  /** One bit for each nonce of the window. Words of a ring: each is cleared when the window reaches it. */
  readonly #bits = new Int32Array(WORDS)
  /** The highest nonce so far. An array, so that a new value needs no memory. */
  readonly #highest = new Float64Array(1)

  /** Hot. False for a nonce that has come before, or that is too old to know. */
  accept(nonce: number): boolean {
    const highest = this.#highest[0] as number
    if (nonce <= highest - WINDOW) return false
    if (nonce > highest) this.#advance(highest, nonce)
    const word = Math.floor(nonce / 32) % WORDS
    const bit = 1 << (nonce % 32)
    if (((this.#bits[word] as number) & bit) !== 0) return false
    this.#bits[word] = (this.#bits[word] as number) | bit
    return true
  }

  #advance(from: number, to: number): void {
    const first = Math.floor(from / 32) + 1
    const last = Math.floor(to / 32)
    for (let word = Math.max(first, last - WORDS + 1); word <= last; word++) this.#bits[word % WORDS] = 0
    this.#highest[0] = to
  }
}
