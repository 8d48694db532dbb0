import { copyBytes, hasBytes, type VirtualInterface } from '../nic/index.ts'
import type { AckQueue } from './ack-queue.ts'
import { HANDLER_SHIFT, HEAD_SIZE, SLOT_SHIFT, WORD_COUNT_SHIFT } from './message-layout.ts'
import { ZERO_TAG } from './tag.ts'
import type { Words } from './words.ts'

const NO_WORDS = new Int32Array(0)
/** Below this a copy to the queue costs less than another system call. */
const COPIED_MAX = 16 * 1024

/** Builds one frame at a time in place, and adds acknowledgements to it. Allocates nothing. */
export class FrameWriter {
  readonly end: VirtualInterface
  private readonly acks: AckQueue
  /** Index of `sendWords` at which the frame's words begin. */
  private wordsAt = 0
  /** Bytes before the payload. */
  private headerLength = 0
  /** The interface's `sendWords` while a frame is built. */
  private words: Int32Array = NO_WORDS

  constructor(end: VirtualInterface, acks: AckQueue) {
    this.end = end
    this.acks = acks
  }

  /**
   * Reserves a frame, and puts the words into it, and the tag unless it is zero; only a request has one. Without `words` the
   * caller puts them. Returns where the payload goes in `sendBytes`, or a negative status. `extra`: bytes of tag and region.
   */
  reserve(
    kind: number,
    handler: number,
    slot: number,
    wordCount: number,
    extra: number,
    payloadLength: number,
    words?: Words,
    tag = ZERO_TAG,
  ): number {
    const header = (HEAD_SIZE + extra + 4 * wordCount + 7) & ~7
    const at = this.end.reserve(header + payloadLength)
    if (at < 0) return at
    const target = this.end.sendWords
    const headAt = at >> 2
    target[headAt] =
      kind | (wordCount << WORD_COUNT_SHIFT) | (handler << HANDLER_SHIFT) | (slot << SLOT_SHIFT)
    target[headAt + 1] = this.acks.pending > 0 ? this.acks.dequeueRun() : 0
    const tagAt = headAt + HEAD_SIZE / 4
    const wordsAt = tagAt + (extra >> 2)
    if (!tag.isZero) {
      target[tagAt] = tag.low
      target[tagAt + 1] = tag.high
    }
    if (words !== undefined) {
      const { values, count } = words
      for (let i = 0; i < count; i++) target[wordsAt + i] = values[i] as number
    }
    this.words = target
    this.wordsAt = wordsAt
    this.headerLength = header
    return at + header
  }

  /** The region ends where the words begin. */
  putRegion(offset: number, length: number): void {
    this.words[this.wordsAt - 2] = offset
    this.words[this.wordsAt - 1] = length
  }

  putWord(index: number, word: number): void {
    this.words[this.wordsAt + index] = word
  }

  /** Commits with that payload; `at` is where `reserve` said. The caller may reuse its memory on return. */
  commitPayload(at: number, payload: Uint8Array, from: number, length: number): void {
    const { end } = this
    if (end.commitFrom !== undefined && length >= COPIED_MAX && hasBytes(payload, from + length)) {
      this.words = NO_WORDS
      return end.commitFrom(this.headerLength, payload, from, length)
    }
    copyBytes(payload, from, end.sendBytes, at, length)
    this.commit(length)
  }

  commit(payloadLength: number): void {
    // Drop the reference: the interface may be closed, and its memory gone, before the next frame.
    this.words = NO_WORDS
    this.end.commit(this.headerLength + payloadLength)
  }
}
