import { atomics } from '../atomics.ts'
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
  type OpenOverflow,
  OVERFLOW_HEAD_WORD,
  overflowSizeOf,
  ROOM_WANTED_WORD,
  SHOWN_WORD,
  SKIP,
  STAMP_BIT,
  SWITCH,
  stampOf,
} from './ring-layout.ts'

const NO_WORDS = new Int32Array(0)
const NO_BYTES = new Uint8Array(0)

/** State of the ring that this side does not write at present: the first ring or the overflow ring. */
interface OtherRing {
  readonly bytes: Uint8Array
  readonly words: Int32Array
  readonly size: number
  readonly headWord: number
  readonly tail: number
  readonly headSeen: number
}

/** The sending half of a ring (ring-layout.ts). The consumer may write any words: HEAD is copied, then checked. */
export class RingProducer {
  bytes: Uint8Array
  words: Int32Array
  readonly frameMax: number
  /** The protocol violation of the consumer, if there was one. */
  violation: string | undefined
  /** True while this side writes to the overflow ring. */
  isInOverflow = false
  private control: Int32Array
  private size: number
  private headWord = HEAD_WORD
  private openOverflow: OpenOverflow | undefined
  private other: OtherRing | undefined
  /** Position in the overflow ring at which the producer entered it last. */
  private enteredAt = 0
  private tail = 0
  /** HEAD as last read. The producer reads the consumer's cache line only when the ring seems full. */
  private headSeen = 0
  /** Where the reserved frame begins; equal to `#tail` unless a skip precedes it. */
  private reservedAt = 0
  private open = true

  constructor(memory: ArrayBuffer, offset: number, size: number) {
    this.control = new Int32Array(memory, offset, CONTROL_SIZE / 4)
    this.bytes = new Uint8Array(memory, offset + CONTROL_SIZE, size)
    this.words = new Int32Array(memory, offset + CONTROL_SIZE, size / 4)
    this.size = size
    this.frameMax = frameMaxOf(size)
  }

  /** From now on frames that find no room in the first ring go to the overflow ring while that has room. */
  useOverflow(open: OpenOverflow): void {
    this.openOverflow = open
  }

  /** Offset in `bytes` of the content of a new frame, or a negative status. */
  reserve(length: number): number {
    if (length > this.frameMax)
      throw new RangeError(`a frame of ${length} bytes; the most is ${this.frameMax}`)
    if (!this.open) return this.violation === undefined ? CLOSED : BROKEN
    if (this.isInOverflow && !this.leaveOverflow() && this.violation !== undefined) return BROKEN
    const { tail, size } = this
    const contiguous = size - (tail & (size - 1))
    const need = FRAME_HEADER_SIZE + ((length + 7) & ~7)
    const skip = contiguous < need ? contiguous : 0
    // The consumer's cache line is read only when the ring seems full.
    if (size - FRAME_HEADER_SIZE - ((tail - this.headSeen) | 0) < skip + need) {
      if (!this.refreshHead()) return BROKEN
      if (this.room() < skip + need) return this.enterOverflow() ? this.reserve(length) : NO_RESOURCE
    }
    this.reservedAt = (tail + skip) | 0
    return (this.reservedAt & (size - 1)) + FRAME_HEADER_SIZE
  }

  /** Publishes a word that the consumer may read at any time, without a frame (`shownWord`). */
  showWord(word: number): void {
    if (this.open) atomics.store(this.control, SHOWN_WORD, word)
  }

  /** Marks that this side closes because of a fault. Works after a violation, too, until `close`. */
  cutOff(): void {
    if (this.control.length > 0) atomics.store(this.control, CUT_OFF_WORD, 1)
  }

  /** Publishes the reserved frame with `length` bytes of content. Returns whether the consumer asked to be woken. */
  commit(length: number): boolean {
    const { words } = this
    const mask = this.size - 1
    const first = this.tail
    const at = this.reservedAt
    this.tail = (at + FRAME_HEADER_SIZE + ((length + 7) & ~7)) | 0
    words[((this.tail & mask) + FRAME_STAMP) >> 2] = NO_FRAME
    words[(at & mask) >> 2] = length
    if (at !== first) {
      words[((at & mask) + FRAME_STAMP) >> 2] = at | STAMP_BIT
      words[(first & mask) >> 2] = SKIP
    }
    // Publishes all of the above: a sequentially consistent store.
    atomics.store(words, ((first & mask) + FRAME_STAMP) >> 2, first | STAMP_BIT)
    return (
      atomics.load(this.control, ARMED_WORD) !== 0 &&
      atomics.compareExchange(this.control, ARMED_WORD, 1, 0) === 1
    )
  }

  hasRoom(length: number): boolean {
    if (!this.open) return false
    const contiguous = this.size - (this.tail & (this.size - 1))
    const need = FRAME_HEADER_SIZE + align8(length)
    const total = contiguous < need ? contiguous + need : need
    if (this.room() >= total || (this.refreshHead() && this.room() >= total)) return true
    return this.open && this.openOverflow !== undefined && !this.isInOverflow
  }

  /** Asks the consumer for a wake-up when it releases. False if `length` bytes have room, or after a violation. */
  armForRoom(length: number): boolean {
    atomics.store(this.control, ROOM_WANTED_WORD, 1)
    // `hasRoom` closes this side if it finds a violation: then there is nothing to wait for.
    if (!this.hasRoom(length) && this.open) return true
    atomics.store(this.control, ROOM_WANTED_WORD, 0)
    return false
  }

  disarm(): void {
    if (this.open) atomics.store(this.control, ROOM_WANTED_WORD, 0)
  }

  /** Drops every view of the shared memory, which its owner may unmap afterwards. */
  close(): void {
    this.open = false
    this.control = NO_WORDS
    this.words = NO_WORDS
    this.bytes = NO_BYTES
    this.other = undefined
    this.openOverflow = undefined
  }

  /** Continues in the overflow ring behind the last SWITCH there, which the consumer may not have read yet. */
  private enterOverflow(): boolean {
    if (this.isInOverflow || this.openOverflow === undefined) return false
    const { memory, offset } = this.openOverflow()
    const overflow = this.other ?? this.overflowIn(memory, offset)
    overflow.words[((overflow.tail & (overflow.size - 1)) + FRAME_STAMP) >> 2] = NO_FRAME
    this.publishSwitch()
    this.goTo(overflow)
    this.enteredAt = this.tail
    return true
  }

  /** Offset of the last SWITCH in the overflow ring, perhaps unread by the consumer. Valid unless `isInOverflow`. */
  get switchOffset(): number {
    return this.other === undefined ? 0 : (this.other.tail - FRAME_HEADER_SIZE) & (this.other.size - 1)
  }

  /** Returns to the first ring if the consumer has released all of the overflow ring; false if not. */
  leaveOverflow(): boolean {
    // Before the first frame in the overflow ring, the consumer may still read the first ring, which may be full.
    if (!this.open || this.tail === this.enteredAt) return false
    if (!this.refreshHead() || this.headSeen !== this.tail) return false
    const ring = this.other as OtherRing
    ring.words[((ring.tail & (ring.size - 1)) + FRAME_STAMP) >> 2] = NO_FRAME
    this.publishSwitch()
    this.goTo(ring)
    return this.refreshHead()
  }

  /** Publishes a SWITCH in the header behind the last frame, which is always free. */
  private publishSwitch(): void {
    const at = this.tail & (this.size - 1)
    this.words[at >> 2] = SWITCH
    atomics.store(this.words, (at + FRAME_STAMP) >> 2, stampOf(this.tail))
    this.tail = (this.tail + FRAME_HEADER_SIZE) | 0
  }

  private goTo(next: OtherRing): void {
    this.other = {
      bytes: this.bytes,
      words: this.words,
      size: this.size,
      headWord: this.headWord,
      tail: this.tail,
      headSeen: this.headSeen,
    }
    this.bytes = next.bytes
    this.words = next.words
    this.size = next.size
    this.headWord = next.headWord
    this.tail = next.tail
    this.headSeen = next.headSeen
    this.isInOverflow = !this.isInOverflow
  }

  private overflowIn(memory: ArrayBuffer, offset: number): OtherRing {
    const size = overflowSizeOf(this.size)
    const bytes = new Uint8Array(memory, offset, size)
    const words = new Int32Array(memory, offset, size / 4)
    return { bytes, words, size, headWord: OVERFLOW_HEAD_WORD, tail: 0, headSeen: 0 }
  }

  /** Free bytes by `#headSeen`; there may be more. The header behind the last frame stays free: it holds NO_FRAME. */
  private room(): number {
    return this.size - FRAME_HEADER_SIZE - ((this.tail - this.headSeen) | 0)
  }

  private refreshHead(): boolean {
    const head = atomics.load(this.control, this.headWord)
    const released = (head - this.headSeen) | 0
    const used = (this.tail - this.headSeen) | 0
    if (released < 0 || released > used || (head & 7) !== 0) {
      this.violation = `head moved from ${this.headSeen >>> 0} to ${head >>> 0} with the tail at ${this.tail >>> 0}`
      this.open = false
      return false
    }
    this.headSeen = head
    return true
  }
}
