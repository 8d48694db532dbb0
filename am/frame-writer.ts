import type { VirtualInterface } from '../nic/index.ts'
import type { AckQueue } from './ack-queue.ts'
import { encodeHead, HEAD_SIZE, headerSize } from './message-layout.ts'
import type { Tag } from './tag.ts'
import type { Words } from './words.ts'

const NO_WORDS = new Int32Array(0)

/** Builds one frame at a time in place, and adds acknowledgements to it. Allocates nothing. */
export class FrameWriter {
  readonly end: VirtualInterface
  readonly #acks: AckQueue
  /** Indices of `sendWords` at which the frame's tag and its words begin. */
  #tagAt = 0
  #wordsAt = 0
  #frameAt = 0
  #payloadAt = 0
  /** The interface's `sendWords` while a frame is built. */
  #words: Int32Array = NO_WORDS

  constructor(end: VirtualInterface, acks: AckQueue) {
    this.end = end
    this.#acks = acks
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
    const header = headerSize(wordCount, extra)
    const at = this.end.reserve(header + payloadLength)
    if (at < 0) return at
    const words = this.end.sendWords
    this.#words = words
    words[at >> 2] = encodeHead(kind, wordCount, handler, slot)
    words[(at >> 2) + 1] = this.#acks.takeRun()
    this.#frameAt = at
    this.#tagAt = (at + HEAD_SIZE) >> 2
    this.#wordsAt = (at + HEAD_SIZE + extra) >> 2
    this.#payloadAt = at + header
    return this.#payloadAt
  }

  putTag(tag: Tag): void {
    this.#words[this.#tagAt] = tag.low
    this.#words[this.#tagAt + 1] = tag.high
  }

  /** The region ends where the words begin. */
  putRegion(offset: number, length: number): void {
    this.#words[this.#wordsAt - 2] = offset
    this.#words[this.#wordsAt - 1] = length
  }

  putWord(index: number, word: number): void {
    this.#words[this.#wordsAt + index] = word
  }

  /** Puts the first four words in one call; most messages of sockets have them. */
  putFourWords(a: number, b: number, c: number, d: number): void {
    const words = this.#words
    const at = this.#wordsAt
    words[at] = a
    words[at + 1] = b
    words[at + 2] = c
    words[at + 3] = d
  }

  putWords(words: Words): void {
    const { values, count } = words
    for (let i = 0; i < count; i++) this.#words[this.#wordsAt + i] = values[i] as number
  }

  commit(payloadLength: number): void {
    // Drop the reference: the interface may be closed, and its memory gone, before the next frame.
    this.#words = NO_WORDS
    this.end.commit(this.#payloadAt - this.#frameAt + payloadLength)
  }
}
