import { ablation, copyWords, type FrameSink } from '../../nic/index.ts'
import { CRC_START, copyWithCrc, crcOfWords } from './crc32c.ts'
import {
  ACK_WORD,
  align8,
  CRC_WORD,
  ECHO_WORD,
  FRESH_ECHO,
  HEADER_SIZE,
  HEADER_WORDS,
  KIND_MASK,
  KIND_PART,
  KIND_WORD,
  ORDINAL_WORD,
  SACK_FRAMES,
  SACK_WORD,
  SEQUENCE_WORD,
  sackAtOf,
  WINDOW_FRAMES,
  wordCount,
} from './reliability-layout.ts'
import type { Limits } from './reliability-options.ts'
import type { ReliabilityStats } from './reliability-stats.ts'
import { ReorderBuffer } from './reorder-buffer.ts'

/** Frames handed over that may be unacknowledged: this share of the window, "delayed acknowledgements" of EMP (2002). */
const ACK_SHARE = 1 / 2
const isAckedAtOnce = ablation('no-delayed-acks') !== undefined
const hasPiggyback = ablation('no-piggyback') === undefined
/** "Unexpected queue" of EMP: frames that came early, which the receiver may not hand to the layer above yet. */
const hasUnexpectedQueue = ablation('no-unexpected-queue') === undefined
/** How long an acknowledgement waits for a frame to ride on: well below the peer's shortest time-out. */
const ACK_DELAY_MS = 0.25
/** How many frames later the end of a SACK is checked again: as many as a loss takes to show, and some more. */
const SACK_OVERLAP = 8
/** SACKs of two windows: a window need not begin with one, and the SACKs of its two ends must differ. */
const SACK_COUNT = (2 * WINDOW_FRAMES) / SACK_FRAMES

const NEVER = Number.POSITIVE_INFINITY
const NOWHERE: FrameSink = { handleFrame: () => {} }
const NO_BYTES = new Uint8Array(0)
const NO_WORDS = new Int32Array(0)

/**
 * The receiving half: validates frames, puts them in order, hands them over, and records what must be acknowledged. Each
 * frame is copied to the landing, and from there only to the reorder buffer.
 */
export class Receiver {
  landingWords: Int32Array
  /** Header of the landed frame. */
  readonly header = new Int32Array(HEADER_WORDS)
  /** For an ablation: the last acknowledgement that went as a frame of its own. */
  readonly #said = new Int32Array(HEADER_WORDS)
  /** Whole frames, since the beginning. */
  handedOver = 0
  readonly #stats: ReliabilityStats
  readonly #isIntact: boolean
  readonly #frameMax: number
  readonly #partMax: number
  readonly #ackFrames: number
  readonly #ackBytes: number
  readonly #reorder: ReorderBuffer
  #landingBytes: Uint8Array
  #sink = NOWHERE
  /** Frames that may be handed over in this poll. */
  #left = 0
  /** Bytes of the frame whose parts are being put together, at the beginning of the landing. */
  #assembled = 0
  /** Sequence number of the next expected frame. */
  #expected: number
  #highestOrdinal: number
  #isEchoFresh = false
  /** Frames handed over since the last acknowledgement. */
  #framesOwed = 0
  #bytesOwed = 0
  #owedSinceMs = NEVER
  #isAckDue = false
  /** One bit for each SACK that has changed since it was last sent. */
  #changedSacks = 0

  constructor(
    stats: ReliabilityStats,
    { frameMax, partMax, window, retentionBytes }: Limits,
    firstSequence: number,
    isIntact: boolean,
  ) {
    this.#isIntact = isIntact
    // A part lands behind those that it may belong to.
    const landing = new ArrayBuffer(align8(frameMax) + align8(partMax))
    this.#landingBytes = new Uint8Array(landing)
    this.landingWords = new Int32Array(landing)
    this.#stats = stats
    this.#frameMax = frameMax
    this.#partMax = partMax
    this.#ackFrames = isAckedAtOnce ? 1 : Math.max(1, window * ACK_SHARE)
    this.#ackBytes = retentionBytes / 2
    this.#reorder = new ReorderBuffer(retentionBytes)
    this.#expected = firstSequence
    this.#highestOrdinal = (firstSequence - 1) | 0
    this.#said[KIND_WORD] = sackAtOf(firstSequence)
    this.#said[ACK_WORD] = firstSequence
    this.#said[ECHO_WORD] = this.#highestOrdinal
  }

  /** True if the next expected frame is already here. */
  get isReady(): boolean {
    return this.#reorder.count > 0 && this.#reorder.has(this.#expected)
  }

  get owesAck(): boolean {
    return this.#framesOwed > 0 || this.#isAckDue || this.#changedSacks !== 0
  }

  /** From now on up to `limit` frames are handed over, waiting ones first. */
  begin(sink: FrameSink, limit: number): void {
    this.#sink = sink
    this.#left = limit
    this.#deliverReady()
  }

  /** How many more frames may be handed over. */
  get left(): number {
    return this.#left
  }

  /** From now on no frame is handed over. */
  end(): void {
    this.#sink = NOWHERE
    this.#left = 0
  }

  /** Copies a frame out of the queue; false if it is damaged. The validated copy is the one that is used later. */
  land(words: Int32Array, at: number, length: number): boolean {
    const contentLength = length - HEADER_SIZE
    if (contentLength < 0 || contentLength > this.#partMax) return false
    const { header } = this
    for (let i = 0; i < HEADER_WORDS; i++) header[i] = words[at + i] as number
    const claimed = header[CRC_WORD] as number
    if (this.#isIntact) {
      copyWords(words, at + HEADER_WORDS, this.landingWords, this.#assembled >> 2, wordCount(contentLength))
      return claimed === length
    }
    header[CRC_WORD] = length
    const crc = crcOfWords(CRC_START, header, 0, HEADER_WORDS)
    return (
      ~copyWithCrc(crc, words, at + HEADER_WORDS, this.landingWords, this.#assembled >> 2, contentLength) ===
      claimed
    )
  }

  /** Handles the landed DATA or PART frame. False if no peer that keeps to the window could send it. */
  handleData(length: number): boolean {
    const frame = this.header[SEQUENCE_WORD] as number
    const ahead = (frame - this.#expected) | 0
    const goesOn = ((this.header[KIND_WORD] as number) & KIND_MASK) === KIND_PART
    if (ahead >= WINDOW_FRAMES || (goesOn && (length === 0 || length % 8 !== 0))) return false
    this.#noteOrdinal()
    if (ahead < 0 || this.#reorder.has(frame)) {
      this.#stats.duplicates++
      // The peer may not know that we have this frame: acknowledge it again.
      if (ahead < 0) this.#isAckDue = true
      else this.#noteSack(frame)
    } else if (ahead === 0 && this.#left > 0) {
      this.#deliver(length, goesOn)
      this.#deliverReady()
    } else if (
      hasUnexpectedQueue &&
      this.#reorder.store(frame, this.landingWords, this.#assembled >> 2, length, goesOn)
    ) {
      if (ahead > 0) this.#stats.early++
      // This frame may have revealed that earlier ones, and the next expected one, are missing.
      this.#noteSack(frame)
      this.#noteSack(this.#expected)
      if (ahead >= SACK_OVERLAP) this.#noteSack(frame - SACK_OVERLAP)
    }
    return true
  }

  handleProbe(): void {
    this.#noteOrdinal()
    this.#isAckDue = true
  }

  /** True if the peer may wait for an acknowledgement; `nowMs` is 0 if the clock was not read. */
  isAckUrgent(nowMs: number): boolean {
    if (this.#reorder.count === 0) this.#changedSacks = 0
    return (
      this.#isAckDue ||
      this.#changedSacks !== 0 ||
      this.isAckOverdue() ||
      nowMs >= this.#owedSinceMs + ACK_DELAY_MS
    )
  }

  isAckOverdue(): boolean {
    return this.#framesOwed >= this.#ackFrames || this.#bytesOwed >= this.#ackBytes
  }

  keepTime(nowMs: number): void {
    if (this.#framesOwed > 0 && this.#owedSinceMs === NEVER) this.#owedSinceMs = nowMs
  }

  /**
   * Writes ACK, ECHO, SACK and KIND without the kind into the header at `at`. Nothing is owed afterwards, unless this
   * rides on a frame and the ablation forbids that.
   */
  putAcknowledgement(words: Int32Array, at: number, isRiding: boolean): void {
    if (isRiding && !hasPiggyback) return this.#putSaid(words, at)
    const sackAt = this.#nextSack()
    words[at + KIND_WORD] = this.#isEchoFresh ? sackAt | FRESH_ECHO : sackAt
    words[at + ACK_WORD] = this.#expected
    words[at + ECHO_WORD] = this.#highestOrdinal
    words[at + SACK_WORD] = this.#reorder.bitsAt(sackAt)
    words[at + SACK_WORD + 1] = this.#reorder.bitsAt(sackAt + 32)
    this.#isEchoFresh = false
    this.#isAckDue = false
    if (!hasPiggyback) this.#noteSaid(words, at)
    if (this.#framesOwed === 0) return
    this.#framesOwed = 0
    this.#bytesOwed = 0
    this.#owedSinceMs = NEVER
  }

  #noteSaid(words: Int32Array, at: number): void {
    for (let word = 0; word < HEADER_WORDS; word++) this.#said[word] = words[at + word] as number
    this.#said[KIND_WORD] = (this.#said[KIND_WORD] as number) & ~FRESH_ECHO
  }

  /** What was acknowledged last, once more. */
  #putSaid(words: Int32Array, at: number): void {
    for (let word = KIND_WORD; word < HEADER_WORDS; word++) words[at + word] = this.#said[word] as number
  }

  close(): void {
    this.end()
    this.#landingBytes = NO_BYTES
    this.landingWords = NO_WORDS
  }

  /**
   * Takes over the part that lies behind the assembled ones, and hands over the frame that it completes. The frame is
   * counted before: if the sink throws, the frame is gone all the same.
   */
  #deliver(length: number, goesOn: boolean): void {
    const whole = this.#assembled + length
    this.#expected = (this.#expected + 1) | 0
    this.#framesOwed++
    this.#bytesOwed += length
    this.#stats.delivered++
    this.#assembled = goesOn && whole <= this.#frameMax ? whole : 0
    if (this.#assembled > 0) return
    if (whole > this.#frameMax) {
      // Longer than the peer may send.
      this.#stats.refused++
      return
    }
    this.#left--
    this.handedOver++
    this.#sink.handleFrame(this.#landingBytes, 0, whole)
  }

  #deliverReady(): void {
    while (this.#left > 0 && this.isReady) {
      const goesOn = this.#reorder.goesOn(this.#expected)
      this.#deliver(this.#reorder.remove(this.#expected, this.landingWords, this.#assembled >> 2), goesOn)
    }
  }

  #noteOrdinal(): void {
    const ordinal = this.header[ORDINAL_WORD] as number
    if (((ordinal - this.#highestOrdinal) | 0) <= 0) return
    this.#highestOrdinal = ordinal
    this.#isEchoFresh = true
  }

  #noteSack(frame: number): void {
    this.#changedSacks |= 1 << ((sackAtOf(frame) / SACK_FRAMES) & (SACK_COUNT - 1))
  }

  /** Where the next SACK begins: one that has changed, or else that of the next expected frame. */
  #nextSack(): number {
    const current = sackAtOf(this.#expected)
    if (this.#changedSacks === 0) return current
    const index = 31 - Math.clz32(this.#changedSacks & -this.#changedSacks)
    this.#changedSacks &= this.#changedSacks - 1
    return (current + SACK_FRAMES * ((index - current / SACK_FRAMES) & (SACK_COUNT - 1))) | 0
  }
}
