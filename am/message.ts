import type { Channel } from './channel.ts'
import { AmError } from './errors.ts'
import { WORDS_MAX } from './message-layout.ts'

const NO_BYTES = new Uint8Array(0)

/**
 * What a handler is given: one object per channel, reused for every message. It is valid only while the handler runs
 * and says so (`ERR_AM_TOKEN`) if it is used later; `copy()` what must live longer.
 */
export class Message {
  /** The conversation that it came by. */
  readonly channel: Channel
  /** Index of the handler that runs. */
  handler = 0
  isRequest = false
  /** Bytes of payload; 0 for a short message. */
  length = 0
  /** The memory in which the payload lies, from `offset` on: for handlers that allocate nothing. */
  bytes: Uint8Array = NO_BYTES
  offset = 0
  readonly words = new Int32Array(WORDS_MAX)
  wordCount = 0
  #live = false
  #replied = false

  constructor(channel: Channel) {
    this.channel = channel
  }

  /** The i-th word; words that were not sent read as 0. */
  word(i: number): number {
    this.#assertLive()
    return i < this.wordCount ? (this.words[i] as number) : 0
  }

  /** A view of the payload, valid only while the handler runs. */
  payload(): Uint8Array {
    this.#assertLive()
    return this.bytes.subarray(this.offset, this.offset + this.length)
  }

  /** A copy of the payload, which is the caller's. */
  copy(): Buffer {
    this.#assertLive()
    return Buffer.from(this.bytes.subarray(this.offset, this.offset + this.length))
  }

  /** Answers a request, once, to whoever sent it. Never refused: a reply that finds no room waits in a bounded queue. */
  reply(handler: number, ...words: number[]): void {
    this.#checkToken().sendReply(handler, words, undefined)
    this.#replied = true
  }

  replyMedium(handler: number, payload: Uint8Array, ...words: number[]): void {
    this.#checkToken().sendReply(handler, words, payload)
    this.#replied = true
  }

  /** The channel's: begins a message. */
  begin(isRequest: boolean, handler: number, bytes: Uint8Array, offset: number, length: number): void {
    this.#live = true
    this.#replied = false
    this.isRequest = isRequest
    this.handler = handler
    this.bytes = bytes
    this.offset = offset
    this.length = length
  }

  /** The channel's: the handler has returned, and with it the message ends. */
  finish(): void {
    this.#live = false
    this.bytes = NO_BYTES
  }

  #assertLive(): void {
    if (!this.#live) throw new AmError('ERR_AM_TOKEN', 'a message is valid only while its handler runs')
  }

  #checkToken(): Channel {
    this.#assertLive()
    if (!this.isRequest) throw new AmError('ERR_AM_TOKEN', 'a reply handler may send nothing')
    if (this.#replied) throw new AmError('ERR_AM_TOKEN', 'a request handler may reply only once')
    return this.channel
  }
}
