import { BROKEN, CLOSED, NO_RESOURCE } from '../status.ts'
import {
  ARMED_WORD,
  align8,
  CONTROL_SIZE,
  FRAME_HEADER_SIZE,
  frameMaxOf,
  HEAD_WORD,
  ROOM_WANTED_WORD,
  SKIP,
  TAIL_WORD,
} from './ring-layout.ts'

const NO_WORDS = new Int32Array(0)
const NO_BYTES = new Uint8Array(0)

/** The sending half of a ring (ring-layout.ts). Trusts nothing that the consumer writes. */
export class RingProducer {
  bytes: Uint8Array
  words: Int32Array
  readonly frameMax: number
  /** What the consumer did wrong, if anything. */
  violation: string | undefined
  #control: Int32Array
  readonly #size: number
  #tail = 0
  /** The last HEAD we looked at: the consumer's cache line is touched only when the ring looks full. */
  #headSeen = 0
  /** Where the reserved frame begins; equal to `#tail` unless a skip precedes it. */
  #reservedAt = 0
  #open = true

  constructor(memory: ArrayBuffer, offset: number, size: number) {
    this.#control = new Int32Array(memory, offset, CONTROL_SIZE / 4)
    this.bytes = new Uint8Array(memory, offset + CONTROL_SIZE, size)
    this.words = new Int32Array(memory, offset + CONTROL_SIZE, size / 4)
    this.#size = size
    this.frameMax = frameMaxOf(size)
  }

  /** Offset in `bytes` of the content of a new frame, or a negative status. */
  reserve(length: number): number {
    if (length > this.frameMax)
      throw new RangeError(`a frame of ${length} bytes; the most is ${this.frameMax}`)
    if (!this.#open) return this.violation === undefined ? CLOSED : BROKEN
    const position = this.#tail & (this.#size - 1)
    const contiguous = this.#size - position
    const need = FRAME_HEADER_SIZE + align8(length)
    const skip = contiguous < need ? contiguous : 0
    if (this.#size - ((this.#tail - this.#headSeen) | 0) < skip + need) {
      if (!this.#refreshHead()) return BROKEN
      if (this.#size - ((this.#tail - this.#headSeen) | 0) < skip + need) return NO_RESOURCE
    }
    if (skip !== 0) {
      this.words[position >> 2] = SKIP
      this.words[(position >> 2) + 1] = this.#tail
    }
    this.#reservedAt = (this.#tail + skip) | 0
    return (this.#reservedAt & (this.#size - 1)) + FRAME_HEADER_SIZE
  }

  /** Publishes the reserved frame with `length` bytes of content. Returns whether the consumer asked to be woken. */
  commit(length: number): boolean {
    const position = this.#reservedAt & (this.#size - 1)
    this.words[position >> 2] = length
    this.words[(position >> 2) + 1] = this.#reservedAt
    this.#tail = (this.#reservedAt + FRAME_HEADER_SIZE + align8(length)) | 0
    // Publishes all of the above.
    Atomics.store(this.#control, TAIL_WORD, this.#tail)
    return (
      Atomics.load(this.#control, ARMED_WORD) !== 0 &&
      Atomics.compareExchange(this.#control, ARMED_WORD, 1, 0) === 1
    )
  }

  hasRoom(length: number): boolean {
    if (!this.#open) return false
    const contiguous = this.#size - (this.#tail & (this.#size - 1))
    const need = FRAME_HEADER_SIZE + align8(length)
    const total = contiguous < need ? contiguous + need : need
    if (this.#size - ((this.#tail - this.#headSeen) | 0) >= total) return true
    return this.#refreshHead() && this.#size - ((this.#tail - this.#headSeen) | 0) >= total
  }

  /** Asks the consumer to wake us when it releases; false if `length` bytes of room are there already. */
  armForRoom(length: number): boolean {
    Atomics.store(this.#control, ROOM_WANTED_WORD, 1)
    // Looking may find a violation: then there is nothing to wait for.
    if (!this.hasRoom(length) && this.#open) return true
    Atomics.store(this.#control, ROOM_WANTED_WORD, 0)
    return false
  }

  disarm(): void {
    if (this.#open) Atomics.store(this.#control, ROOM_WANTED_WORD, 0)
  }

  /** Lets go of the shared memory: no view of it is left behind here. */
  close(): void {
    this.#open = false
    this.#control = NO_WORDS
    this.words = NO_WORDS
    this.bytes = NO_BYTES
  }

  #refreshHead(): boolean {
    const head = Atomics.load(this.#control, HEAD_WORD)
    const released = (head - this.#headSeen) | 0
    const used = (this.#tail - this.#headSeen) | 0
    if (released < 0 || released > used || (head & 7) !== 0) {
      this.violation = `head moved from ${this.#headSeen >>> 0} to ${head >>> 0} with the tail at ${this.#tail >>> 0}`
      this.#open = false
      return false
    }
    this.#headSeen = head
    return true
  }
}
