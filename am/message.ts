import { copyBytes } from '../nic/index.ts'
import { AmError, rangeError } from './errors.ts'
import { NO_DESTINATION } from './mapping.ts'
import { WORDS_MAX } from './message-layout.ts'
import { assertPayload } from './payload.ts'
import type { UndeliverableReason } from './undeliverable.ts'
import { Words } from './words.ts'

const NO_BYTES = new Uint8Array(0)
const NO_REQUEST = -1

/** Outcome of a request in its handler. */
const UNANSWERED = 0
const ANSWERED = 1
const DEFERRED = 2

/** The channel, as far as its messages use it. */
export interface MessageChannel {
  readonly owner: {
    readonly peerName: string
    readonly destination?: number | undefined
    readonly driverReason?: string | undefined
  }
  readonly end: { readonly driver: string }
  readonly mediumMax: number
  sendReply(slot: number, handler: number, words: Words, payload: Uint8Array | undefined): void
  sendReplyLong(slot: number, handler: number, words: Words, payload: Uint8Array, offset: number): void
  sendReturn(slot: number, reason: number): void
  release(slot: number): void
  touch(): void
}

/** What `copyOf` makes. */
type MessageCopy<Copy> = new (
  channel: MessageChannel,
  destination: number | undefined,
  handler: number,
  words: readonly number[],
  bytes: Buffer,
  slot: number,
  reason: UndeliverableReason | undefined,
) => Copy

/** Words of the reply being made. One object is enough, because handlers do not wait. */
const replyWords = new Words()

/**
 * The argument of a handler: one object per conversation, reused for every message. It is valid only while the
 * handler runs; later use throws `ERR_AM_TOKEN`. Use `copy()` for bytes that must live longer. The runtime owns
 * the payload's memory; for a long message it is this endpoint's own segment.
 */
export class Message {
  /** For the runtime only: use `word(i)`. Entries from `wordCount` on may be of an earlier message. */
  readonly words = new Int32Array(WORDS_MAX)
  wordCount = 0
  /** The conversation of the message. Private: a program that prints its message must not print the runtime. */
  readonly #channel: MessageChannel
  #slot = NO_REQUEST
  #handler = 0
  #bytes: Uint8Array = NO_BYTES
  #offset = 0
  #length = 0
  #reason: UndeliverableReason | undefined
  #returnedFrom = NO_DESTINATION
  #isLive = false
  #outcome = UNANSWERED

  constructor(channel: MessageChannel) {
    this.#channel = channel
  }

  static channelOf(message: Message): MessageChannel {
    return message.#channel
  }

  /** For the runtime only: a copy that outlives the handler. A request is finished later, by the copy. */
  static copyOf<Copy>(message: Message, Copy: MessageCopy<Copy>): Copy {
    const slot = message.#slot === NO_REQUEST ? NO_REQUEST : message.defer()
    const { owner } = message.#channel
    const destination = message.#returnedFrom === NO_DESTINATION ? owner.destination : message.#returnedFrom
    const words: number[] = []
    for (let i = 0; i < message.wordCount; i++) words.push(message.words[i] as number)
    const length = message.#length
    const bytes = Buffer.allocUnsafe(length)
    if (length > 0) copyBytes(message.#bytes, message.#offset, bytes, 0, length)
    return new Copy(message.#channel, destination, message.#handler, words, bytes, slot, message.#reason)
  }

  /** False for copies by programs that clone and compare objects, and for the prototype: their getters return undefined. */
  static #isMessage(message: object): boolean {
    return #channel in message
  }

  /** For the runtime only: true while the handler runs. */
  get isLive(): boolean {
    if (!Message.#isMessage(this)) return false
    return this.#isLive
  }

  /** Name of the endpoint that sent the message. */
  get source(): string {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#channel.owner.peerName
  }

  /** Name of the driver that brought the message. */
  get driver(): string {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#channel.end.driver
  }

  /** Why no driver that the endpoint prefers has brought it; undefined if it prefers none. */
  get driverReason(): string | undefined {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#channel.owner.driverReason
  }

  /** The destination that maps the peer, if there is one; for a returned message, the one that it was sent to. */
  get destination(): number | undefined {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#returnedFrom === NO_DESTINATION ? this.#channel.owner.destination : this.#returnedFrom
  }

  get isRequest(): boolean {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#slot !== NO_REQUEST
  }

  /** Index of the running handler; for a returned message, of the handler that it was sent to. */
  get handler(): number {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#handler
  }

  /** Bytes of payload; 0 for a short message. */
  get length(): number {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#length
  }

  /** Memory of the payload, which begins at `offset`: for handlers that allocate nothing. */
  get bytes(): Uint8Array {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#bytes
  }

  get offset(): number {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#offset
  }

  /** Why the message came back; only on handler 0. */
  get reason(): UndeliverableReason | undefined {
    if (!Message.#isMessage(this)) return undefined as never
    this.#assertLive()
    return this.#reason
  }

  /** The i-th word; words that were not sent read as 0. */
  word(i: number): number {
    if (!this.#isLive || !Number.isInteger(i) || i < 0 || i >= this.wordCount) return this.#wordBeyond(i)
    return this.words[i] as number
  }

  /** A view of the payload, valid only while the handler runs. */
  payload(): Uint8Array {
    this.#assertLive()
    return this.#bytes.subarray(this.#offset, this.#offset + this.#length)
  }

  /** A copy of the payload, owned by the caller. */
  copy(): Buffer {
    this.#assertLive()
    const copy = Buffer.allocUnsafe(this.#length)
    copyBytes(this.#bytes, this.#offset, copy, 0, this.#length)
    return copy
  }

  /** Answers a request, once, to its sender. Never refused: a reply that finds no room waits in a bounded queue. */
  reply(handler: number, ...words: number[]): void
  reply(
    handler: number,
    a?: number,
    b?: number,
    c?: number,
    d?: number,
    e?: number,
    f?: number,
    g?: number,
    h?: number,
  ): void {
    if (!this.#isLive || this.#slot === NO_REQUEST || this.#outcome !== UNANSWERED) this.#assertMayReply()
    // biome-ignore lint/complexity/noArguments: a rest parameter would make an array for every message
    replyWords.set(arguments.length - 1, a, b, c, d, e, f, g, h)
    this.#channel.sendReply(this.#slot, handler, replyWords, undefined)
    this.#outcome = ANSWERED
  }

  /** As `reply`, with a payload, which the caller may reuse on return. */
  replyMedium(handler: number, payload: Uint8Array, ...words: number[]): void
  replyMedium(
    handler: number,
    payload: Uint8Array,
    a?: number,
    b?: number,
    c?: number,
    d?: number,
    e?: number,
    f?: number,
    g?: number,
    h?: number,
  ): void {
    this.#assertMayReply()
    assertPayload(payload, this.#channel.mediumMax)
    // biome-ignore lint/complexity/noArguments: a rest parameter would make an array for every message
    replyWords.set(arguments.length - 2, a, b, c, d, e, f, g, h)
    this.#channel.sendReply(this.#slot, handler, replyWords, payload)
    this.#outcome = ANSWERED
  }

  /**
   * As `reply`, with a payload that is put at `offset` in the requester's segment before its handler runs. A reply that
   * does not fit there comes back to handler 0 here. The caller may reuse the payload on return.
   */
  replyLong(handler: number, payload: Uint8Array, offset: number, ...words: number[]): void {
    this.#assertMayReply()
    replyWords.setArray(words)
    this.#channel.sendReplyLong(this.#slot, handler, replyWords, payload, offset)
    this.#outcome = ANSWERED
  }

  /** For the runtime only: the request is finished later. Returns its slot, for `sendReply` or `release`. */
  defer(): number {
    this.#assertMayReply()
    this.#outcome = DEFERRED
    return this.#slot
  }

  /** For the channel only: begins a message. `slot` is the request's, or -1. */
  begin(handler: number, slot: number, bytes: Uint8Array, offset: number, length: number): void {
    this.#isLive = true
    this.#outcome = UNANSWERED
    this.#slot = slot
    this.#handler = handler
    this.#bytes = bytes
    this.#offset = offset
    this.#length = length
    if (this.#reason !== undefined) this.#forgetReturn()
  }

  /** For the channel only: the message that has begun is a returned one. */
  markReturned(reason: UndeliverableReason, destination: number | undefined): void {
    this.#reason = reason
    this.#returnedFrom = destination ?? NO_DESTINATION
  }

  /** For the channel only: the handler has returned, which ends the message. True if its slot can go back. */
  finish(): boolean {
    this.#isLive = false
    this.#bytes = NO_BYTES
    return this.#slot !== NO_REQUEST && this.#outcome === UNANSWERED
  }

  #wordBeyond(i: number): number {
    this.#assertLive()
    assertWordIndex(i)
    return 0
  }

  #forgetReturn(): void {
    this.#reason = undefined
    this.#returnedFrom = NO_DESTINATION
  }

  #assertLive(): void {
    if (!this.#isLive) throw new AmError('ERR_AM_TOKEN', 'a message is valid only while its handler runs')
  }

  #assertMayReply(): void {
    this.#assertLive()
    if (this.#slot === NO_REQUEST) {
      throw new AmError(
        'ERR_AM_TOKEN',
        this.#reason === undefined
          ? 'a reply handler may send nothing'
          : 'a returned message cannot be replied to',
      )
    }
    if (this.#outcome !== UNANSWERED) {
      throw new AmError('ERR_AM_TOKEN', 'a request handler may reply only once')
    }
  }
}

/** The conversation of a message. */
export function channelOf(message: Message): MessageChannel {
  return Message.channelOf(message)
}

export function assertWordIndex(i: number): void {
  if (!Number.isInteger(i) || i < 0 || i >= WORDS_MAX) {
    throw rangeError(`word ${String(i)} is not within 0..${WORDS_MAX - 1}`)
  }
}
