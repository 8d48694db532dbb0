/** Bits of the lower part: an offset into a ring, which is at most 2^30, can be added without leaving 31 bits. */
const LOW_BITS = 30
const LOW_MASK = 2 ** LOW_BITS - 1
/** Of the higher part, those that belong to the lower word. */
const WORD_BITS = 32
const SHARED_BITS = WORD_BITS - LOW_BITS

/**
 * An address as two small integers. As one number it takes 47 bits, and V8 may allocate the results of arithmetic with
 * it: not acceptable once a frame.
 */
export class SplitAddress {
  readonly low: number
  readonly high: number

  constructor(address: number) {
    this.low = address % 2 ** LOW_BITS
    this.high = Math.floor(address / 2 ** LOW_BITS)
  }

  /** Writes the address and `offset` more, as 64 bits, to `words`. */
  writeTo(words: Int32Array, word: number, offset: number): void {
    const low = this.low + offset
    const high = this.high + (low >> LOW_BITS)
    words[word] = (low & LOW_MASK) | (high << LOW_BITS)
    words[word + 1] = high >> SHARED_BITS
  }
}
