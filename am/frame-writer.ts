import { copyBytes, hasBytes, type VirtualInterface } from '../nic/index.ts'
import type { AckQueue } from './ack-queue.ts'
import { HANDLER_SHIFT, HEAD_SIZE, SLOT_SHIFT, WORD_COUNT_SHIFT } from './message-layout.ts'
import type { Tag } from './tag.ts'
import type { Words } from './words.ts'

const NO_WORDS = new Int32Array(0)
/** Below this a copy to the queue costs less than another system call. */
const COPIED_MAX = 16 * 1024

/** Builds one frame at a time in place, and adds acknowledgements to it. Allocates nothing. */
export class FrameWriter {
  readonly end: VirtualInterface
  private readonly acks: AckQueue
  /** Indices of `sendWords` at which the frame's tag and its words begin. */
  private tagAt = 0
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
   * Reserves a frame. Returns where the payload goes in `sendBytes`, or a negative status. `extra`: bytes of tag
   * and region.
   */
  reserve(
    kind: number,
    handler: number,
    slot: number,
    wordCount: number,
    extra: number,
    payloadLength: number,
  ): number {
    const header = (HEAD_SIZE + extra + 4 * wordCount + 7) & ~7
    const at = this.end.reserve(header + payloadLength)
    if (at < 0) return at
    const words = this.end.sendWords
    const headAt = at >> 2
    words[headAt] = kind | (wordCount << WORD_COUNT_SHIFT) | (handler << HANDLER_SHIFT) | (slot << SLOT_SHIFT)
    words[headAt + 1] = this.acks.pending > 0 ? this.acks.dequeueRun() : 0
    this.words = words
    this.tagAt = headAt + HEAD_SIZE / 4
    this.wordsAt = this.tagAt + (extra >> 2)
    this.headerLength = header
    return at + header
  }

  /** Puts the words, and the tag unless it is zero; only a request has one. */
  put(words: Words, tag: Tag): void {
    const target = this.words
    if (!tag.isZero) {
      target[this.tagAt] = tag.low
      target[this.tagAt + 1] = tag.high
    }
    const { values, count } = words
    for (let i = 0; i < count; i++) target[this.wordsAt + i] = values[i] as number
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
