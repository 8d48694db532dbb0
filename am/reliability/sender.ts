import type { Clock } from '../../nic/clock.ts'
import { copyWords, type VirtualInterface } from '../../nic/index.ts'
import { CRC_START, copyWithCrc, crcOfWords } from './crc32c.ts'
import type { Receiver } from './receiver.ts'
import {
  ACK_WORD,
  align8,
  CRC_WORD,
  ECHO_WORD,
  FRESH_ECHO,
  HEADER_SIZE,
  HEADER_WORDS,
  KIND_ACK,
  KIND_DATA,
  KIND_PART,
  KIND_PROBE,
  KIND_WORD,
  ORDINAL_WORD,
  SACK_FRAMES,
  SACK_WORD,
  SEQUENCE_WORD,
  sackAtOf,
  WINDOW_MASK,
  wordCount,
} from './reliability-layout.ts'
import type { Limits } from './reliability-options.ts'
import type { ReliabilityStats } from './reliability-stats.ts'
import { Retention } from './retention.ts'
import { RoundTrip } from './round-trip.ts'

/** Later transmissions that must have arrived before a frame counts as lost (RFC 9002, kPacketThreshold). */
const LOSS_THRESHOLD = 3
/** Frames that are sent again after a time-out. */
const PROBES = 2
/** Time-outs that must pass before a peer counts as lost, however long they took. */
const VAIN_TIMEOUTS_MIN = 3
/** How often a round trip is measured. */
const SAMPLE_INTERVAL_MS = 1

const NEVER = Number.POSITIVE_INFINITY

/**
 * The sending half: keeps each frame until the peer has handed it over, and sends again what was lost.
 *
 *   first ........... unsent ............ next
 *   under way         wait for room       the next new one
 *
 * Each transmission has its own ordinal, and the peer echoes the highest that arrived: so an echo identifies the copy.
 * NEVER: the clock starts at the next reading of the time.
 */
export class Sender {
  readonly retention: Retention
  readonly #inner: VirtualInterface
  readonly #isIntact: boolean
  readonly #receiver: Receiver
  readonly #stats: ReliabilityStats
  readonly #clock: Clock
  readonly #roundTrip = new RoundTrip()
  #unsent: number
  #ordinal: number
  #echo: number
  /** The next ordinal when the last time-out passed. */
  #doubtedTo: number
  #resendAtMs = NEVER
  #quietSinceMs = NEVER
  /** Time-outs since the last valid frame of the peer. */
  #vainTimeouts = 0
  #sampling: 'due' | 'running' | 'echoed' | 'paused' = 'due'
  #sampleOrdinal = 0
  #sampleAtMs = 0

  constructor(
    inner: VirtualInterface,
    receiver: Receiver,
    stats: ReliabilityStats,
    { retentionBytes, partMax, window }: Limits,
    firstSequence: number,
    clock: Clock,
  ) {
    this.#clock = clock
    this.#inner = inner
    this.#isIntact = inner.capabilities.isIntact === true
    this.#receiver = receiver
    this.#stats = stats
    this.retention = new Retention(retentionBytes, firstSequence, partMax, window)
    this.#unsent = firstSequence
    this.#doubtedTo = firstSequence
    this.#ordinal = (firstSequence - 1) | 0
    this.#echo = this.#ordinal
  }

  /** Frames that the peer has not handed over, as far as is known here. */
  get unacknowledged(): number {
    return (this.retention.next - this.retention.first) | 0
  }

  /** Those of them that are not known to have arrived. */
  get outstanding(): number {
    const { first, next, arrived } = this.retention
    let count = this.unacknowledged
    for (let frame = first; frame !== next; frame = (frame + 1) | 0) {
      count -= arrived[frame & WINDOW_MASK] as number
    }
    return count
  }

  /** True once a round trip was measured; its end is the next reading of the clock. */
  get wantsTime(): boolean {
    return this.#sampling === 'echoed'
  }

  /** When the next time-out is due, if no frame comes before. */
  get deadlineMs(): number {
    return this.#resendAtMs
  }

  /** How much room below the first waiting frame needs; 0 if none waits. */
  get roomWanted(): number {
    if (this.#unsent === this.retention.next) return 0
    return align8(HEADER_SIZE + (this.retention.lengths[this.#unsent & WINDOW_MASK] as number))
  }

  sendUnsent(): void {
    while (this.#unsent !== this.retention.next && this.#transmit(this.#unsent)) {
      this.#unsent = (this.#unsent + 1) | 0
    }
  }

  /** Sends an acknowledgement as a frame of its own; false if there is no room for it. */
  sendAck(): boolean {
    return this.#sendBare(KIND_ACK)
  }

  /** Handles the acknowledgements in `header`. False if they name frames that were never sent. */
  handleAcknowledgement(header: Int32Array): boolean {
    const { retention } = this
    const ack = header[ACK_WORD] as number
    const echo = header[ECHO_WORD] as number
    const acked = (ack - retention.first) | 0
    if (acked > ((this.#unsent - retention.first) | 0) || ((echo - this.#ordinal) | 0) > 0) return false
    this.#quietSinceMs = NEVER
    this.#vainTimeouts = 0
    if (((echo - this.#echo) | 0) > 0) {
      this.#echo = echo
      this.#resendAtMs = NEVER
    }
    if (acked > 0) {
      retention.release(ack)
      this.#noteProgress()
    }
    // An overtaken frame has no news.
    if (acked >= 0 && retention.first !== this.#unsent) this.#handleSack(header)
    if (this.#sampling === 'running' && ((echo - this.#sampleOrdinal) | 0) >= 0) {
      // An echo that was lost and repeated would measure the peer's time-outs, and ours would grow with them.
      this.#sampling = ((header[KIND_WORD] as number) & FRESH_ECHO) === 0 ? 'due' : 'echoed'
    }
    return true
  }

  /** Does what is due by now. False if the peer was silent for `peerTimeoutMs` while frames were unacknowledged. */
  keepTime(nowMs: number, peerTimeoutMs: number): boolean {
    if (this.#sampling === 'echoed') {
      this.#roundTrip.handleSample(Math.max(0, nowMs - this.#sampleAtMs))
      this.#sampling = 'paused'
    }
    if (this.#sampling === 'paused' && nowMs >= this.#sampleAtMs + SAMPLE_INTERVAL_MS) this.#sampling = 'due'
    if (this.unacknowledged === 0) {
      this.#resendAtMs = NEVER
      this.#quietSinceMs = NEVER
      return true
    }
    if (this.#quietSinceMs === NEVER) this.#quietSinceMs = nowMs
    if (this.#resendAtMs === NEVER) this.#resendAtMs = nowMs + this.#roundTrip.timeoutMs
    if (nowMs >= this.#resendAtMs) this.#handleTimeout(nowMs)
    // If this process was stopped or busy all that time, the silence was its own.
    return nowMs < this.#quietSinceMs + peerTimeoutMs || this.#vainTimeouts < VAIN_TIMEOUTS_MIN
  }

  #handleTimeout(nowMs: number): void {
    this.#stats.timeouts++
    this.#vainTimeouts++
    this.#roundTrip.backOff()
    this.#resendAtMs = nowMs + this.#roundTrip.timeoutMs
    this.#sampling = 'due'
    this.#doubtedTo = this.#unsent
    // Once a probe is echoed, everything before it that has not arrived counts as lost.
    this.#ordinal = (this.#ordinal + LOSS_THRESHOLD) | 0
    let probes = 0
    const { first, arrived } = this.retention
    for (let frame = first; frame !== this.#unsent && probes < PROBES; frame = (frame + 1) | 0) {
      if (arrived[frame & WINDOW_MASK] !== 0) continue
      if (!this.#resend(frame)) return
      probes++
    }
    if (probes === 0) this.#sendBare(KIND_PROBE)
  }

  #handleSack(header: Int32Array): void {
    const low = header[SACK_WORD] as number
    const high = header[SACK_WORD + 1] as number
    const echo = header[ECHO_WORD] as number
    const sackAt = sackAtOf(header[KIND_WORD] as number)
    const { first, arrived } = this.retention
    // While frames come in order there is no loss to look for.
    const isFirstMissed = sackAtOf(first) === sackAt && this.#isLost(first, echo)
    if ((low | high) === 0 && !isFirstMissed && ((first - this.#doubtedTo) | 0) >= 0) return
    for (let i = 0; i < SACK_FRAMES; i++) {
      const frame = (sackAt + i) | 0
      if (((frame - first) | 0) < 0 || ((frame - this.#unsent) | 0) >= 0) continue
      if ((((i < 32 ? low : high) >>> i) & 1) === 0) {
        if (this.#isLost(frame, echo) && !this.#resend(frame)) return
      } else if (arrived[frame & WINDOW_MASK] === 0) {
        arrived[frame & WINDOW_MASK] = 1
        this.#noteProgress()
      }
    }
  }

  /** A frame that the peer lacked when it had seen `echo` is lost if it was sent some transmissions earlier. */
  #isLost(frame: number, echo: number): boolean {
    const slot = frame & WINDOW_MASK
    const { arrived, ordinals } = this.retention
    return arrived[slot] === 0 && ((echo - (ordinals[slot] as number)) | 0) >= LOSS_THRESHOLD
  }

  /** The peer has a frame that it was not known to have. */
  #noteProgress(): void {
    this.#resendAtMs = NEVER
    this.#roundTrip.recover()
  }

  #resend(frame: number): boolean {
    // The measured round trip has not come to an end.
    if (this.retention.ordinals[frame & WINDOW_MASK] === this.#sampleOrdinal) this.#sampling = 'due'
    if (!this.#transmit(frame)) return false
    this.#stats.resent++
    return true
  }

  /** Sends a frame that is kept, for the first time or again; false if there is no room for it. */
  #transmit(frame: number): boolean {
    const { retention } = this
    const slot = frame & WINDOW_MASK
    const length = retention.lengths[slot] as number
    const at = this.#inner.reserve(align8(HEADER_SIZE + length))
    if (at < 0) return false
    const words = this.#inner.sendWords
    const head = at >> 2
    this.#ordinal = (this.#ordinal + 1) | 0
    retention.ordinals[slot] = this.#ordinal
    const kind = retention.goesOn[slot] === 0 ? KIND_DATA : KIND_PART
    this.#putHeader(words, head, kind, frame, HEADER_SIZE + length)
    const from = retention.wordOf(slot)
    if (this.#isIntact) copyWords(retention.words, from, words, head + HEADER_WORDS, wordCount(length))
    else {
      const crc = crcOfWords(CRC_START, words, head, HEADER_WORDS)
      words[head + CRC_WORD] = ~copyWithCrc(crc, retention.words, from, words, head + HEADER_WORDS, length)
    }
    this.#inner.commit(HEADER_SIZE + length)
    if (this.#sampling === 'due') this.#beginSample()
    return true
  }

  #sendBare(kind: typeof KIND_ACK | typeof KIND_PROBE): boolean {
    const at = this.#inner.reserve(HEADER_SIZE)
    if (at < 0) return false
    const words = this.#inner.sendWords
    if (kind === KIND_PROBE) this.#ordinal = (this.#ordinal + 1) | 0
    else this.#stats.acksSent++
    const head = at >> 2
    this.#putHeader(words, head, kind, 0, HEADER_SIZE)
    if (!this.#isIntact) words[head + CRC_WORD] = ~crcOfWords(CRC_START, words, head, HEADER_WORDS)
    this.#inner.commit(HEADER_SIZE)
    return true
  }

  /** Leaves the length in the place of the checksum. */
  #putHeader(words: Int32Array, head: number, kind: number, frame: number, length: number): void {
    this.#receiver.putAcknowledgement(words, head, kind !== KIND_ACK)
    words[head + CRC_WORD] = length
    words[head + KIND_WORD] = (words[head + KIND_WORD] as number) | kind
    words[head + SEQUENCE_WORD] = frame
    words[head + ORDINAL_WORD] = this.#ordinal
  }

  #beginSample(): void {
    this.#sampling = 'running'
    this.#sampleOrdinal = this.#ordinal
    this.#sampleAtMs = this.#clock.now()
  }
}
