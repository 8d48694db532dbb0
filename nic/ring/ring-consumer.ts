import { atomics } from '../atomics.ts'
import type { FrameSink } from '../nic.ts'
import { BROKEN, CLOSED } from '../status.ts'
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
  POLL_BYTES_MAX,
  ROOM_WANTED_WORD,
  SHOWN_WORD,
  SKIP,
  SWITCH,
  stampOf,
} from './ring-layout.ts'

const NO_WORDS = new Int32Array(0)
const NO_BYTES = new Uint8Array(0)

/** The other of the two rings, while this side is in one of them. */
interface OtherRing {
  readonly bytes: Uint8Array
  readonly words: Int32Array
  readonly size: number
  readonly headWord: number
  readonly head: number
}

/** The receiving half of a ring (ring-layout.ts). Everything in it is a stranger's input: copied, checked, then used. */
export class RingConsumer {
  bytes: Uint8Array
  words: Int32Array
  /** What the producer did wrong, if anything. */
  violation: string | undefined
  /** The producer waits for room and must be woken: set by `poll`, cleared by its caller. */
  producerWaits = false
  #control: Int32Array
  #size: number
  #headWord = HEAD_WORD
  #isInOverflow = false
  readonly #openOverflow: OpenOverflow | undefined
  #other: OtherRing | undefined
  readonly #frameMax: number
  /** Released once this much has been consumed, so that a busy producer is not held up. */
  readonly #releaseAfter: number
  #head = 0
  #released = 0
  #open = true
  #polling = false
  /** Of a producer that is gone: how many bytes it can have published that were not taken. */
  #leftUntilEnd: number | undefined

  constructor(memory: ArrayBuffer, offset: number, size: number, openOverflow?: OpenOverflow) {
    this.#openOverflow = openOverflow
    this.#control = new Int32Array(memory, offset, CONTROL_SIZE / 4)
    this.bytes = new Uint8Array(memory, offset + CONTROL_SIZE, size)
    this.words = new Int32Array(memory, offset + CONTROL_SIZE, size / 4)
    this.#size = size
    this.#frameMax = frameMaxOf(size)
    this.#releaseAfter = size / 16
  }

  /** What the producer's program shows. */
  get shownWord(): number {
    return this.#open ? atomics.load(this.#control, SHOWN_WORD) : 0
  }

  /** Whether the producer has marked its end by `cutOff`. */
  get isCutOff(): boolean {
    return this.#control.length > 0 && atomics.load(this.#control, CUT_OFF_WORD) !== 0
  }

  /** Whether something is there to be polled, whatever `poll` will think of it. */
  hasFrame(): boolean {
    return this.#open && this.#stamp() !== NO_FRAME && !this.#isAtEnd()
  }

  /** Up to `limit` frames, and about `POLL_BYTES_MAX` bytes, to `sink`; returns how many frames, or `BROKEN` or `CLOSED`. */
  poll(sink: FrameSink, limit: number): number {
    if (!this.#open) return this.violation === undefined ? CLOSED : BROKEN
    if (!this.hasFrame()) return 0
    if (this.#polling) throw new Error('poll was called from within a frame handler')
    this.#polling = true
    try {
      return this.#consume(sink, limit)
    } finally {
      this.#polling = false
      if (this.#isWorthReleasing()) this.#release()
    }
  }

  #consume(sink: FrameSink, limit: number): number {
    let count = 0
    let bytes = 0
    while (this.#open && count < limit && bytes < POLL_BYTES_MAX) {
      const stamp = this.#stamp()
      if (stamp === NO_FRAME) break
      if (stamp !== stampOf(this.#head)) {
        return this.#refuse(`frame at ${this.#head >>> 0} is stamped ${stamp >>> 0}`)
      }
      const position = this.#head & (this.#size - 1)
      const contiguous = this.#size - position
      const length = this.words[position >> 2] as number
      if (length === SKIP) {
        // A producer skips only what is too short for its frame.
        if (contiguous >= FRAME_HEADER_SIZE + this.#frameMax) {
          return this.#refuse(`skip at ${this.#head >>> 0} passes over ${contiguous} bytes`)
        }
        this.#head = (this.#head + contiguous) | 0
        this.#countDown(contiguous)
        continue
      }
      if (length === SWITCH) {
        if (!this.#switch()) return this.#refuse('a switch to an overflow ring that is not there')
        // It counts: a producer that switches again and again must not keep us here.
        count++
        continue
      }
      const need = FRAME_HEADER_SIZE + align8(length)
      if (length < 0 || length > this.#frameMax || need > contiguous) {
        return this.#refuse(`frame at ${this.#head >>> 0} claims ${length} bytes`)
      }
      // Accounted for before the handler runs: if it throws, the frame is gone all the same.
      this.#head = (this.#head + need) | 0
      bytes += need
      this.#countDown(need)
      count++
      sink.handleFrame(this.bytes, position + FRAME_HEADER_SIZE, length)
      if (((this.#head - this.#released) | 0) >= this.#releaseAfter) this.#release()
    }
    return count
  }

  /** Asks the producer to wake us; false if something has arrived already, or a frame is being handled. */
  arm(): boolean {
    // To arm is to release, and the frame must stay until its handler has returned.
    if (!this.#open || this.#polling) return false
    this.#release()
    atomics.store(this.#control, ARMED_WORD, 1)
    if (this.#stamp() === NO_FRAME) return true
    atomics.store(this.#control, ARMED_WORD, 0)
    return false
  }

  /** The producer is gone: of what somebody goes on writing no more is taken than the ring holds, and a poll's worth. */
  expectEnd(): void {
    this.#leftUntilEnd ??=
      this.#size + (this.#openOverflow === undefined ? 0 : (this.#other?.size ?? overflowSizeOf(this.#size)))
  }

  disarm(): void {
    if (this.#open) atomics.store(this.#control, ARMED_WORD, 0)
  }

  close(): void {
    this.#open = false
    this.#control = NO_WORDS
    this.words = NO_WORDS
    this.bytes = NO_BYTES
    this.#other = undefined
  }

  /** The producer goes on in the other ring; false if there is none. */
  #switch(): boolean {
    const next = this.#other ?? (this.#openOverflow && this.#map(this.#openOverflow))
    if (next === undefined) return false
    this.#head = (this.#head + FRAME_HEADER_SIZE) | 0
    this.#countDown(FRAME_HEADER_SIZE)
    this.#release()
    const { bytes, words } = this
    this.#other = { bytes, words, size: this.#size, headWord: this.#headWord, head: this.#head }
    this.#isInOverflow = !this.#isInOverflow
    this.bytes = next.bytes
    this.words = next.words
    this.#size = next.size
    this.#headWord = next.headWord
    this.#head = next.head
    this.#released = this.#head
    return true
  }

  #map(open: OpenOverflow): OtherRing {
    const { memory, offset } = open()
    const size = overflowSizeOf(this.#size)
    const bytes = new Uint8Array(memory, offset, size)
    const words = new Int32Array(memory, offset, size / 4)
    return { bytes, words, size, headWord: OVERFLOW_HEAD_WORD, head: 0 }
  }

  #countDown(taken: number): void {
    if (this.#leftUntilEnd !== undefined) this.#leftUntilEnd -= taken
  }

  #isAtEnd(): boolean {
    return this.#leftUntilEnd !== undefined && this.#leftUntilEnd <= 0
  }

  /** Of the next frame, be there one or not. */
  #stamp(): number {
    return atomics.load(this.words, ((this.#head & (this.#size - 1)) + FRAME_STAMP) >> 2)
  }

  /** What is not released yet is too little to keep a frame from fitting; but the producer may sleep for it. */
  #isWorthReleasing(): boolean {
    if (((this.#head - this.#released) | 0) >= this.#releaseAfter) return true
    // Only when all of the overflow ring is released the producer leaves it.
    if (this.#isInOverflow) return true
    return this.#open && atomics.load(this.#control, ROOM_WANTED_WORD) !== 0
  }

  #release(): void {
    if (!this.#open || this.#released === this.#head) return
    this.#released = this.#head
    // The producer may overwrite everything before this from now on.
    atomics.store(this.#control, this.#headWord, this.#head)
    if (
      atomics.load(this.#control, ROOM_WANTED_WORD) !== 0 &&
      atomics.compareExchange(this.#control, ROOM_WANTED_WORD, 1, 0) === 1
    ) {
      this.producerWaits = true
    }
  }

  #refuse(violation: string): typeof BROKEN {
    this.violation = violation
    this.#open = false
    return BROKEN
  }
}
