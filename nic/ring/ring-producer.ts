import { BROKEN, CLOSED, NO_RESOURCE } from '../status.ts'
import {
  ARMED_WORD,
  align8,
  CONTROL_SIZE,
  CUT_OFF_WORD,
  FRAME_HEADER_SIZE,
  FRAME_STAMP,
  frameMaxOf,
  HEAD_WORD,
  NO_FRAME,
  ROOM_WANTED_WORD,
  SHOWN_WORD,
  SKIP,
  stampOf,
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
    const contiguous = this.#size - (this.#tail & (this.#size - 1))
    const need = FRAME_HEADER_SIZE + align8(length)
    const skip = contiguous < need ? contiguous : 0
    if (this.#room() < skip + need) {
      if (!this.#refreshHead()) return BROKEN
      if (this.#room() < skip + need) return NO_RESOURCE
    }
    this.#reservedAt = (this.#tail + skip) | 0
    return (this.#reservedAt & (this.#size - 1)) + FRAME_HEADER_SIZE
  }

  /** For the consumer's program to see at any time, without a frame. */
  showWord(word: number): void {
    if (this.#open) Atomics.store(this.#control, SHOWN_WORD, word)
  }

  /** Marks that this side closes because of a fault. Works after a violation, too, until `close`. */
  cutOff(): void {
    if (this.#control.length > 0) Atomics.store(this.#control, CUT_OFF_WORD, 1)
  }

  /** Publishes the reserved frame with `length` bytes of content. Returns whether the consumer asked to be woken. */
  commit(length: number): boolean {
    const { words } = this
    const mask = this.#size - 1
    const first = this.#tail
    const at = this.#reservedAt
    this.#tail = (at + FRAME_HEADER_SIZE + align8(length)) | 0
    words[((this.#tail & mask) + FRAME_STAMP) >> 2] = NO_FRAME
    words[(at & mask) >> 2] = length
    if (at !== first) {
      words[((at & mask) + FRAME_STAMP) >> 2] = stampOf(at)
      words[(first & mask) >> 2] = SKIP
    }
    // Publishes all of the above.
    Atomics.store(words, ((first & mask) + FRAME_STAMP) >> 2, stampOf(first))
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
    return this.#room() >= total || (this.#refreshHead() && this.#room() >= total)
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

  /** As far as is known. The header behind the last frame must be free to say that there is none. */
  #room(): number {
    return this.#size - FRAME_HEADER_SIZE - ((this.#tail - this.#headSeen) | 0)
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
