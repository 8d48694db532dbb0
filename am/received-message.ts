import { assertReplyHandler } from './checks.ts'
import { AmError } from './errors.ts'
import { assertWordIndex, type MessageChannel } from './message.ts'
import { assertPayload } from './payload.ts'
import { UNDELIVERABLE, type UndeliverableReason } from './undeliverable.ts'
import { Words } from './words.ts'

const NO_REQUEST = -1

const replyWords = new Words()

/**
 * A copy of a message that outlives its handler, for `call` and `messages`. A request holds its credit until it is
 * answered or `done()`; the code that gave it out ensures that.
 */
export class ReceivedMessage {
  readonly source: string
  /** Name of the driver that brought the message. */
  readonly driver: string
  /** Why no driver that the endpoint prefers has brought it; undefined if it prefers none. */
  readonly driverReason: string | undefined
  readonly destination: number | undefined
  readonly handler: number
  readonly isRequest: boolean
  readonly words: readonly number[]
  /** The payload, owned by the receiver. */
  readonly bytes: Buffer
  readonly offset: number
  /** Why the message came back; only from handler 0. */
  readonly reason: UndeliverableReason | undefined
  readonly #channel: MessageChannel
  #slot: number
  #users: number
  #retentions: number
  #isHandled: boolean

  /** For `Message.copyOf`: `slot` is that of a deferred request, or -1. The message owns `words` and `bytes`. */
  constructor(
    channel: MessageChannel,
    destination: number | undefined,
    handler: number,
    words: readonly number[],
    bytes: Buffer,
    slot: number,
    reason: UndeliverableReason | undefined,
  ) {
    this.source = channel.owner.peerName
    this.driver = channel.end.driver
    this.driverReason = channel.owner.driverReason
    this.destination = destination
    this.handler = handler
    this.isRequest = slot !== NO_REQUEST
    this.words = words
    this.bytes = bytes
    this.offset = 0
    this.reason = reason
    this.#channel = channel
    this.#slot = slot
    this.#users = 0
    this.#retentions = 0
    this.#isHandled = false
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

  /** The message has been handled: its credit goes back. Further calls do nothing. */
  done(): void {
    const slot = this.#slot
    if (slot === NO_REQUEST) return
    this.#slot = NO_REQUEST
    this.#channel.release(slot)
  }

  /** For the runtime only: calls of `retain` so far. */
  retentionCount(): number {
    return this.#retentions
  }

  /** For the runtime only: the message is in use until a call of `release`. */
  retain(): void {
    this.#users++
    this.#retentions++
  }

  /** For the runtime only: the last release returns the credit, or the request itself if no user has handled it. */
  release(isHandled: boolean): void {
    this.#isHandled ||= isHandled
    if (--this.#users > 0) return
    if (this.#isHandled) this.done()
    else this.#returnUnhandled()
  }

  #returnUnhandled(): void {
    if (this.#slot === NO_REQUEST) return
    this.#channel.sendReturn(this.#slot, UNDELIVERABLE.NO_SUCH_HANDLER)
    this.#slot = NO_REQUEST
    this.#channel.touch()
  }

  #answer(handler: number, payload: Uint8Array | undefined, words: readonly number[]): void {
    if (this.#slot === NO_REQUEST) {
      const why = this.isRequest
        ? 'the request is answered or handled already; handleEach keeps it until its projection ends'
        : 'the message is no request'
      throw new AmError('ERR_AM_TOKEN', `there is nothing to reply to: ${why}`)
    }
    assertReplyHandler(handler)
    replyWords.setArray(words)
    this.#channel.sendReply(this.#slot, handler, replyWords, payload)
    this.#slot = NO_REQUEST
    this.#channel.touch()
  }
}
