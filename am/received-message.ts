import type { Channel } from './channel.ts'
import { assertReplyHandler } from './checks.ts'
import { AmError } from './errors.ts'
import { assertWordIndex, channelOf, type Message } from './message.ts'
import { assertPayload } from './payload.ts'
import { UNDELIVERABLE, type UndeliverableReason } from './undeliverable.ts'
import { Words } from './words.ts'

const NO_REQUEST = -1

const replyWords = new Words()

/**
 * A copy of a message, for those who handle it later than its handler runs: `call` and `messages`. A request among them
 * holds the credit that it was sent with until it is answered or `done()`; whoever gave it out sees to that.
 */
export class ReceivedMessage {
  readonly source: string
  readonly destination: number | undefined
  readonly handler: number
  readonly isRequest: boolean
  readonly words: readonly number[]
  /** The payload, which is the receiver's own. */
  readonly bytes: Buffer
  readonly offset = 0
  /** Why the message came back; only from handler 0. */
  readonly reason: UndeliverableReason | undefined
  readonly #channel: Channel
  #slot: number

  /** The runtime's: `slot` is that of a request which is held, or -1. */
  constructor(message: Message, slot = NO_REQUEST) {
    this.source = message.source
    this.destination = message.destination
    this.handler = message.handler
    this.isRequest = slot !== NO_REQUEST
    this.words = Array.from(message.words.subarray(0, message.wordCount))
    this.bytes = message.copy()
    this.reason = message.reason
    this.#channel = channelOf(message)
    this.#slot = slot
  }

  get length(): number {
    return this.bytes?.length ?? 0
  }

  word(i: number): number {
    assertWordIndex(i)
    return this.words[i] ?? 0
  }

  payload(): Buffer {
    return this.bytes
  }

  copy(): Buffer {
    return Buffer.from(this.bytes)
  }

  /** Answers a request, once, and gives its credit back. */
  reply(handler: number, ...words: number[]): void {
    this.#answer(handler, undefined, words)
  }

  replyMedium(handler: number, payload: Uint8Array, ...words: number[]): void {
    assertPayload(payload, this.#channel.mediumMax)
    this.#answer(handler, payload, words)
  }

  /** The message has been handled: its credit goes back. More than once is the same as once. */
  done(): void {
    const slot = this.#slot
    if (slot === NO_REQUEST) return
    this.#slot = NO_REQUEST
    this.#channel.release(slot)
  }

  /** The runtime's: nobody has looked at it, and it returns to its sender. */
  giveBack(): void {
    if (this.#slot === NO_REQUEST) return
    this.#channel.sendReturn(this.#slot, UNDELIVERABLE.NO_SUCH_HANDLER)
    this.#slot = NO_REQUEST
    this.#channel.touch()
  }

  #answer(handler: number, payload: Uint8Array | undefined, words: readonly number[]): void {
    if (this.#slot === NO_REQUEST) {
      const why = this.isRequest ? 'is answered or done already' : 'is no request'
      throw new AmError('ERR_AM_TOKEN', `a message that ${why} cannot be replied to`)
    }
    assertReplyHandler(handler)
    replyWords.setArray(words)
    this.#channel.sendReply(this.#slot, handler, replyWords, payload)
    this.#slot = NO_REQUEST
    this.#channel.touch()
  }
}
