import { NO_RESOURCE } from '../../nic/index.ts'
import { align8, WINDOW_FRAMES, WINDOW_MASK } from './reliability-layout.ts'

const NO_BYTES = new Uint8Array(0)
const NO_WORDS = new Int32Array(0)

/**
 * Frames that were sent and are not acknowledged: contents in a ring of bytes, first in, first out; their state in
 * columns by sequence number. A frame never crosses the end of the ring. A frame that is longer than a frame of the
 * interface below is kept as several parts, each with its own sequence number.
 */
export class Retention {
  bytes: Uint8Array
  words: Int32Array
  /** The oldest kept frame, and the next new one. */
  first: number
  next: number
  readonly lengths = new Int32Array(WINDOW_FRAMES)
  /** The number of each frame's last transmission. */
  readonly ordinals = new Int32Array(WINDOW_FRAMES)
  /** 1: the peer has received it, and not yet handed it over. */
  readonly arrived = new Uint8Array(WINDOW_FRAMES)
  /** 1: the next sequence number has the next part of the same frame. */
  readonly goesOn = new Uint8Array(WINDOW_FRAMES)
  /** Where each frame begins and ends; positions wrap at 2^32. */
  readonly #starts = new Int32Array(WINDOW_FRAMES)
  readonly #ends = new Int32Array(WINDOW_FRAMES)
  readonly #size: number
  readonly #partMax: number
  readonly #window: number
  #firstAt = 0
  #nextAt = 0
  #reservedAt = 0

  /**
   * @param size a power of two
   * @param partMax longest part: a multiple of 8
   * @param window most parts that are kept
   */
  constructor(size: number, firstSequence: number, partMax: number, window: number) {
    const memory = new ArrayBuffer(size)
    this.bytes = new Uint8Array(memory)
    this.words = new Int32Array(memory)
    this.first = firstSequence
    this.next = firstSequence
    this.#size = size
    this.#partMax = partMax
    this.#window = window
  }

  /** Offset of a new frame, or `NO_RESOURCE`. */
  reserve(length: number): number {
    // An empty ring begins anew, so that a caller that sends one frame at a time stays within a few cache lines.
    if (this.first === this.next) this.#firstAt = this.#nextAt = 0
    if (!this.hasRoom(length)) return NO_RESOURCE
    this.#reservedAt = (this.#nextAt + this.#skipBefore(length)) | 0
    return this.#reservedAt & (this.#size - 1)
  }

  commit(length: number): void {
    let at = this.#reservedAt
    let left = length
    do {
      const slot = this.next & WINDOW_MASK
      const part = Math.min(left, this.#partMax)
      left -= part
      this.#starts[slot] = at
      at = (at + align8(part)) | 0
      this.#ends[slot] = at
      this.lengths[slot] = part
      this.goesOn[slot] = left > 0 ? 1 : 0
      this.arrived[slot] = 0
      this.next = (this.next + 1) | 0
    } while (left > 0)
    this.#nextAt = at
  }

  hasRoom(length: number): boolean {
    const parts = length <= this.#partMax ? 1 : Math.ceil(length / this.#partMax)
    if (((this.next - this.first) | 0) + parts > this.#window) return false
    const used = (this.#nextAt - this.#firstAt) | 0
    return this.#size - used >= this.#skipBefore(length) + align8(length)
  }

  /** Index in `words` of the content of a kept frame. */
  wordOf(slot: number): number {
    return ((this.#starts[slot] as number) & (this.#size - 1)) >> 2
  }

  /** Releases the frames before `sequence`. */
  release(sequence: number): void {
    this.#firstAt = this.#ends[(sequence - 1) & WINDOW_MASK] as number
    this.first = sequence
  }

  close(): void {
    this.bytes = NO_BYTES
    this.words = NO_WORDS
  }

  #skipBefore(length: number): number {
    const contiguous = this.#size - (this.#nextAt & (this.#size - 1))
    return contiguous < align8(length) ? contiguous : 0
  }
}
