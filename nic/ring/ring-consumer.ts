import { atomics } from '../atomics.ts'
import type { FrameSink } from '../nic.ts'
import { BROKEN, CLOSED } from '../status.ts'
import {
  ARMED_WORD,
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
  POLL_BYTES_MAX,
  ROOM_WANTED_WORD,
  SHOWN_WORD,
  SKIP,
  STAMP_BIT,
  SWITCH,
} from './ring-layout.ts'

const NO_WORDS = new Int32Array(0)
const NO_BYTES = new Uint8Array(0)

/** State of the ring that this side does not read at present: the first ring or the overflow ring. */
interface OtherRing {
  readonly bytes: Uint8Array
  readonly words: Int32Array
  readonly size: number
  readonly headWord: number
  readonly head: number
}

/**
 * The receiving half of a ring (ring-layout.ts). The producer may write any bytes: each word is copied, then checked.
 */
export class RingConsumer {
  bytes: Uint8Array
  words: Int32Array
  /** The protocol violation of the producer, if there was one. */
  violation: string | undefined
  /** The producer waits for room and must be woken. Set by `poll` and `arm`, cleared by their caller. */
  producerWaits = false
  private control: Int32Array
  private size: number
  private headWord = HEAD_WORD
  private isInOverflow = false
  private readonly openOverflow: OpenOverflow | undefined
  private other: OtherRing | undefined
  private readonly frameMax: number
  /** `poll` releases after this many consumed bytes, so that a busy producer gets room during a poll. */
  private readonly releaseAfter: number
  private head = 0
  private released = 0
  private open = true
  private polling = false
  /** After `expectEnd`: how many bytes this side still consumes. */
  private leftUntilEnd: number | undefined

  constructor(memory: ArrayBuffer, offset: number, size: number, openOverflow?: OpenOverflow) {
    this.openOverflow = openOverflow
    this.control = new Int32Array(memory, offset, CONTROL_SIZE / 4)
    this.bytes = new Uint8Array(memory, offset + CONTROL_SIZE, size)
    this.words = new Int32Array(memory, offset + CONTROL_SIZE, size / 4)
    this.size = size
    this.frameMax = frameMaxOf(size)
    this.releaseAfter = size / 16
  }

  /** The word that the producer publishes with `showWord`. */
  get shownWord(): number {
    return this.open ? atomics.load(this.control, SHOWN_WORD) : 0
  }

  /** Whether the producer has marked its end by `cutOff`. */
  get isCutOff(): boolean {
    return this.control.length > 0 && atomics.load(this.control, CUT_OFF_WORD) !== 0
  }

  /** Index in `words` of the next frame's stamp; -1 if this side consumes no more. */
  get frameWord(): number {
    const isOver = !this.open || (this.leftUntilEnd !== undefined && this.leftUntilEnd <= 0)
    return isOver ? -1 : ((this.head & (this.size - 1)) + FRAME_STAMP) >> 2
  }

  /** Hands up to `limit` frames, about `POLL_BYTES_MAX` bytes, to `sink`. Returns their number, `BROKEN` or `CLOSED`. */
  poll(sink: FrameSink, limit: number): number {
    if (!this.open) return this.violation === undefined ? CLOSED : BROKEN
    const word = this.frameWord
    if (word < 0 || atomics.load(this.words, word) === NO_FRAME) return 0
    if (this.polling) throw new Error('poll was called from within a frame handler')
    this.polling = true
    try {
      return this.consume(sink, limit)
    } finally {
      this.polling = false
      // Less than `releaseAfter` blocks no frame unless the producer sleeps for it, or waits to leave the overflow ring.
      if (
        ((this.head - this.released) | 0) >= this.releaseAfter ||
        this.isInOverflow ||
        (this.open && atomics.load(this.control, ROOM_WANTED_WORD) !== 0)
      )
        this.release()
    }
  }

  private consume(sink: FrameSink, limit: number): number {
    let count = 0
    let bytes = 0
    while (this.open && count < limit && bytes < POLL_BYTES_MAX) {
      const { head, size } = this
      const position = head & (size - 1)
      const stamp = atomics.load(this.words, (position + FRAME_STAMP) >> 2)
      if (stamp === NO_FRAME) break
      if (stamp !== (head | STAMP_BIT)) {
        return this.refuse(`frame at ${head >>> 0} is stamped ${stamp >>> 0}`)
      }
      const contiguous = size - position
      const length = this.words[position >> 2] as number
      if (length === SKIP) {
        // A correct producer skips only if its frame would cross the end of the ring.
        if (contiguous >= FRAME_HEADER_SIZE + this.frameMax) {
          return this.refuse(`skip at ${head >>> 0} passes over ${contiguous} bytes`)
        }
        this.advance(contiguous)
        continue
      }
      if (length === SWITCH) {
        if (!this.switchRings()) return this.refuse('a switch to an overflow ring that is not there')
        // A SWITCH counts as a frame: a producer that only switches must not keep this loop running.
        count++
        continue
      }
      const need = FRAME_HEADER_SIZE + ((length + 7) & ~7)
      if (length < 0 || length > this.frameMax || need > contiguous) {
        return this.refuse(`frame at ${head >>> 0} claims ${length} bytes`)
      }
      // Consumed before the handler runs: a frame whose handler throws is not delivered again.
      this.head = (head + need) | 0
      if (this.leftUntilEnd !== undefined) this.leftUntilEnd -= need
      bytes += need
      count++
      sink.handleFrame(this.bytes, position + FRAME_HEADER_SIZE, length)
      if (((this.head - this.released) | 0) >= this.releaseAfter) this.release()
    }
    return count
  }

  private advance(length: number): void {
    this.head = (this.head + length) | 0
    if (this.leftUntilEnd !== undefined) this.leftUntilEnd -= length
  }

  /** Asks the producer to wake this side at its next frame. False if a frame has arrived, or is being handled. */
  arm(): boolean {
    // `arm` releases, and the memory of a frame must not be released before its handler has returned.
    if (!this.open || this.polling) return false
    this.release()
    atomics.store(this.control, ARMED_WORD, 1)
    if (atomics.load(this.words, ((this.head & (this.size - 1)) + FRAME_STAMP) >> 2) === NO_FRAME) return true
    atomics.store(this.control, ARMED_WORD, 0)
    return false
  }

  /**
   * The producer has gone. From now on this side consumes at most as many bytes as the rings hold, plus those of one
   * poll: another process that has mapped the memory may go on writing.
   */
  expectEnd(): void {
    this.leftUntilEnd ??=
      this.size + (this.openOverflow === undefined ? 0 : (this.other?.size ?? overflowSizeOf(this.size)))
  }

  disarm(): void {
    if (this.open) atomics.store(this.control, ARMED_WORD, 0)
  }

  close(): void {
    this.open = false
    this.control = NO_WORDS
    this.words = NO_WORDS
    this.bytes = NO_BYTES
    this.other = undefined
  }

  /** Follows the producer to the other ring; false if there is none. */
  private switchRings(): boolean {
    const next = this.other ?? (this.openOverflow && this.map(this.openOverflow))
    if (next === undefined) return false
    this.advance(FRAME_HEADER_SIZE)
    this.release()
    const { bytes, words } = this
    this.other = { bytes, words, size: this.size, headWord: this.headWord, head: this.head }
    this.isInOverflow = !this.isInOverflow
    this.bytes = next.bytes
    this.words = next.words
    this.size = next.size
    this.headWord = next.headWord
    this.head = next.head
    this.released = this.head
    return true
  }

  private map(open: OpenOverflow): OtherRing {
    const { memory, offset } = open()
    const size = overflowSizeOf(this.size)
    const bytes = new Uint8Array(memory, offset, size)
    const words = new Int32Array(memory, offset, size / 4)
    return { bytes, words, size, headWord: OVERFLOW_HEAD_WORD, head: 0 }
  }

  private release(): void {
    if (!this.open || this.released === this.head) return
    this.released = this.head
    // From this store on the producer may overwrite all frames before HEAD.
    atomics.store(this.control, this.headWord, this.head)
    if (
      atomics.load(this.control, ROOM_WANTED_WORD) !== 0 &&
      atomics.compareExchange(this.control, ROOM_WANTED_WORD, 1, 0) === 1
    ) {
      this.producerWaits = true
    }
  }

  private refuse(violation: string): typeof BROKEN {
    this.violation = violation
    this.open = false
    return BROKEN
  }
}
