/**
 * One conversation with one peer endpoint: a virtual interface, the credits of both directions, and the dispatch of
 * what arrives to the endpoint's handlers.
 */
import {
  BROKEN,
  CLOSED,
  copyBytes,
  type FrameSink,
  NO_CREDIT,
  NO_RESOURCE,
  type Status,
  type VirtualInterface,
} from '../nic/index.ts'
import { AmError } from './errors.ts'
import type { HandlerTable } from './handler-table.ts'
import { Message } from './message.ts'
import {
  CREDITS_LIMIT,
  CREDITS_SHIFT,
  encodeHead,
  HANDLER_MASK,
  HANDLER_SHIFT,
  HEAD_SIZE,
  headerSize,
  KIND_CREDIT,
  KIND_MASK,
  KIND_REPLY,
  KIND_REQUEST,
  WORD_COUNT_MASK,
  WORD_COUNT_SHIFT,
  WORDS_MAX,
} from './message-layout.ts'

export const CREDITS_DEFAULT = 64

/** The layer above, as far as a channel knows it. All of it may run user code. */
export interface ChannelOwner {
  /** After every poll, whether or not something came: re-drive what was refused. */
  handleProgress(): void
  /** Bytes of payload that wait for room in the send queue; 0 if nothing waits. */
  roomWanted(): number
  /** The peer broke the protocol. The channel is closed already. */
  handleBroken(error: AmError): void
}

export interface ChannelOptions {
  /** Requests in flight each way; both sides must use the same number. */
  readonly credits?: number
  readonly owner?: ChannelOwner
}

interface QueuedReply {
  readonly handler: number
  readonly words: readonly number[]
  readonly payload: Uint8Array | undefined
}

export class Channel implements FrameSink {
  readonly end: VirtualInterface
  /** Largest payload of a medium message with all its words. */
  readonly mediumMax: number
  owner: ChannelOwner | undefined
  /** The poller's notes: when this channel last moved, how long to spin after that, whether it is hot. */
  lastActiveMs = 0
  spinMs = 0
  isHot = false
  isTouched = false

  readonly #handlers: HandlerTable
  readonly #message = new Message(this)
  readonly #creditsMax: number
  #creditsLeft: number
  /** Requests of the peer that we have handled and whose credit we have not given back yet. */
  #creditsOwed = 0
  /** Replies that found no room. Each holds back the credit of its request, so there are never more than credits. */
  readonly #queuedReplies: QueuedReply[] = []
  /** The handler that runs, or ran last, has replied, and the reply had to be queued. */
  #replyIsQueued = false
  #wordsAt = 0
  #payloadAt = 0
  #frameAt = 0
  #state: 'open' | 'closed' | 'broken' = 'open'
  #wake: (channel: Channel) => void = () => {}

  constructor(end: VirtualInterface, handlers: HandlerTable, options: ChannelOptions = {}) {
    const credits = options.credits ?? CREDITS_DEFAULT
    if (!Number.isInteger(credits) || credits < 1 || credits > CREDITS_LIMIT) {
      throw new AmError('ERR_AM_ARGUMENT', `credits must be within 1..${CREDITS_LIMIT}`)
    }
    this.end = end
    this.owner = options.owner
    this.mediumMax = end.capabilities.frameMax - headerSize(WORDS_MAX)
    this.#handlers = handlers
    this.#creditsMax = credits
    this.#creditsLeft = credits
  }

  get state(): 'open' | 'closed' | 'broken' {
    return this.#state
  }

  get creditsLeft(): number {
    return this.#creditsLeft
  }

  /** Where the payload of a reserved message is written, from the offset that `reserveRequest` returned. */
  get sendBytes(): Uint8Array {
    return this.end.sendBytes
  }

  /** The poller's: whom to tell that this channel has something to do. */
  setWake(wake: (channel: Channel) => void): void {
    this.#wake = wake
  }

  /**
   * Begins a request that is built in place: returns where its payload goes in `sendBytes`, or a negative status. Then
   * `putWord` each word, write the payload, and `commit` how much of it there is. Nothing else may be sent in between.
   */
  reserveRequest(handler: number, wordCount: number, payloadLength: number): number {
    if (this.#state !== 'open') return this.#state === 'closed' ? CLOSED : BROKEN
    // What was said before must not be overtaken: the layer above may rely on a driver that keeps the order.
    if (this.#queuedReplies.length > 0 && !this.#sendQueuedReplies()) return NO_RESOURCE
    if (this.#creditsLeft === 0) return NO_CREDIT
    const at = this.#reserve(KIND_REQUEST, handler, wordCount, payloadLength)
    if (at >= 0) this.#creditsLeft--
    return at
  }

  putWord(index: number, word: number): void {
    this.end.sendWords[this.#wordsAt + index] = word
  }

  commit(payloadLength: number): void {
    this.end.commit(this.#payloadAt - this.#frameAt + payloadLength)
    // A request expects an answer: stay awake for it.
    this.touch()
  }

  /** There is something to do: the poller takes a turn soon. */
  touch(): void {
    this.isTouched = true
    if (!this.isHot) this.#wake(this)
  }

  request(handler: number, words: readonly number[]): Status {
    const at = this.reserveRequest(handler, words.length, 0)
    if (at < 0) return at as Status
    this.#putWords(words)
    this.commit(0)
    return 0
  }

  /** BCopy: the caller may reuse `payload` on return. */
  requestMedium(handler: number, payload: Uint8Array, words: readonly number[]): Status {
    const at = this.reserveRequest(handler, words.length, payload.length)
    if (at < 0) return at as Status
    this.#putWords(words)
    copyBytes(payload, 0, this.end.sendBytes, at, payload.length)
    this.commit(payload.length)
    return 0
  }

  /** Up to `limit` messages, then whatever waits for room or credit. Returns how many messages, or `BROKEN`/`CLOSED`. */
  progress(limit: number): number {
    if (this.#state !== 'open') return this.#state === 'closed' ? CLOSED : BROKEN
    // If a handler throws, the error goes to the program, and the channel goes on with its next turn.
    this.isTouched = true
    const count = this.end.poll(this, limit)
    if (count === BROKEN && this.#state === 'open') this.#break(this.end.failure)
    this.#sendOwed()
    this.isTouched = false
    this.owner?.handleProgress()
    return count
  }

  /** Arms the doorbell; false if there is something to do instead of sleeping. */
  arm(): boolean {
    if (this.#state !== 'open') return true
    return this.end.arm(this.#roomWanted())
  }

  close(): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.end.close()
    this.#wake = () => {}
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    if (this.#state !== 'open') return
    if (length < HEAD_SIZE) return this.#refuse(`a frame of ${length} bytes`)
    const words = this.end.receiveWords
    const head = words[offset >> 2] as number
    const kind = head & KIND_MASK
    const wordCount = (head >> WORD_COUNT_SHIFT) & WORD_COUNT_MASK
    const handlerIndex = (head >> HANDLER_SHIFT) & HANDLER_MASK
    const payloadAt = headerSize(wordCount)
    if (kind > KIND_CREDIT || wordCount > WORDS_MAX || payloadAt > length) {
      return this.#refuse(`a message head of 0x${(head >>> 0).toString(16)} in ${length} bytes`)
    }
    this.#creditsLeft += head >>> CREDITS_SHIFT
    if (this.#creditsLeft > this.#creditsMax) return this.#refuse('more credits came back than were spent')
    if (kind === KIND_CREDIT) return
    if (kind === KIND_REQUEST && this.#creditsOwed + this.#queuedReplies.length >= this.#creditsMax) {
      return this.#refuse('a request without a credit')
    }
    const handler = this.#handlers.get(handlerIndex)
    if (handler === undefined) return this.#refuse(`no handler ${handlerIndex}`)
    const message = this.#message
    for (let i = 0; i < wordCount; i++) message.words[i] = words[(offset + HEAD_SIZE + 4 * i) >> 2] as number
    message.wordCount = wordCount
    this.#replyIsQueued = false
    message.begin(kind === KIND_REQUEST, handlerIndex, bytes, offset + payloadAt, length - payloadAt)
    try {
      handler(message)
    } finally {
      message.finish()
      // The credit of a request whose reply is queued goes back with that reply.
      if (kind === KIND_REQUEST && !this.#replyIsQueued) this.#creditsOwed++
    }
  }

  /** The message's: sends a reply, or queues it until there is room. */
  sendReply(handler: number, words: readonly number[], payload: Uint8Array | undefined): void {
    const length = payload?.length ?? 0
    if (handler !== (handler & HANDLER_MASK) || words.length > WORDS_MAX || length > this.mediumMax) {
      throw new AmError('ERR_AM_ARGUMENT', `a reply of ${words.length} words and ${length} bytes is too long`)
    }
    if (this.#state !== 'open') return
    if (this.#queuedReplies.length > 0 || !this.#trySendReply(handler, words, payload)) {
      this.#replyIsQueued = true
      this.#queuedReplies.push({ handler, words, payload: payload && Uint8Array.from(payload) })
    }
  }

  #trySendReply(handler: number, words: readonly number[], payload: Uint8Array | undefined): boolean {
    const length = payload?.length ?? 0
    const at = this.#reserve(KIND_REPLY, handler, words.length, length)
    if (at < 0) return false
    this.#putWords(words)
    if (payload !== undefined) copyBytes(payload, 0, this.end.sendBytes, at, length)
    this.end.commit(this.#payloadAt - this.#frameAt + length)
    return true
  }

  #reserve(kind: number, handler: number, wordCount: number, payloadLength: number): number {
    const header = headerSize(wordCount)
    if (
      handler !== (handler & HANDLER_MASK) ||
      wordCount > WORDS_MAX ||
      header + payloadLength > this.end.capabilities.frameMax
    ) {
      throw new AmError('ERR_AM_ARGUMENT', `handler ${handler}, ${wordCount} words, ${payloadLength} bytes`)
    }
    const at = this.end.reserve(header + payloadLength)
    if (at < 0) return at
    const owed = this.#creditsOwed
    this.#creditsOwed = 0
    this.end.sendWords[at >> 2] = encodeHead(kind, wordCount, handler, owed)
    this.#frameAt = at
    this.#wordsAt = (at + HEAD_SIZE) >> 2
    this.#payloadAt = at + header
    return this.#payloadAt
  }

  #putWords(words: readonly number[]): void {
    for (let i = 0; i < words.length; i++) this.putWord(i, words[i] as number)
  }

  /** What the peer waits for: replies first, then credits if half of them are owed. */
  #sendOwed(): void {
    if (this.#state !== 'open' || !this.#sendQueuedReplies() || !this.#creditsAreDue()) return
    if (this.#reserve(KIND_CREDIT, 0, 0, 0) >= 0) this.end.commit(headerSize(0))
  }

  /** True if none is left. */
  #sendQueuedReplies(): boolean {
    for (;;) {
      const reply = this.#queuedReplies[0]
      if (reply === undefined) return true
      if (!this.#trySendReply(reply.handler, reply.words, reply.payload)) return false
      this.#queuedReplies.shift()
      this.#creditsOwed++
    }
  }

  #creditsAreDue(): boolean {
    return this.#creditsOwed * 2 >= this.#creditsMax
  }

  #roomWanted(): number {
    const reply = this.#queuedReplies[0]
    if (reply !== undefined) return headerSize(reply.words.length) + (reply.payload?.length ?? 0)
    if (this.#creditsAreDue()) return headerSize(0)
    // Without a credit no room helps: what wakes us then is the frame that brings the credit.
    const wanted = this.#creditsLeft === 0 ? 0 : (this.owner?.roomWanted() ?? 0)
    return wanted === 0 ? 0 : Math.min(headerSize(WORDS_MAX) + wanted, this.end.capabilities.frameMax)
  }

  #refuse(what: string): void {
    this.#break(new Error(what))
  }

  #break(cause: Error | undefined): void {
    this.#state = 'broken'
    this.end.close()
    this.owner?.handleBroken(
      new AmError(
        'ERR_AM_PROTOCOL_VIOLATION',
        `the peer broke the protocol: ${cause?.message ?? 'unknown'}`,
        {
          cause,
        },
      ),
    )
  }
}
