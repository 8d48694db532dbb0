/**
 * One conversation with one peer: a virtual interface, the credits of both directions, and the dispatch of what
 * arrives to the handlers of this side. Sockets use it as it is; `EndpointChannel` adds what endpoints promise.
 */
import {
  BROKEN,
  CLOSED,
  type FrameSink,
  NO_CREDIT,
  NO_RESOURCE,
  type VirtualInterface,
} from '../nic/index.ts'
import { AckQueue } from './ack-queue.ts'
import { AnswerQueue } from './answer-queue.ts'
import type { ChannelOwner } from './channel-owner.ts'
import { assertCredits, assertReplyHandler } from './checks.ts'
import { CreditSlots } from './credit-slots.ts'
import { rangeError, violationOf } from './errors.ts'
import { FrameWriter } from './frame-writer.ts'
import type { Handler, HandlerTable } from './handler-table.ts'
import { Message } from './message.ts'
import {
  CREDIT_RUNS_MAX,
  EXTRA_SIZES,
  FLAG,
  HANDLER_MASK,
  HANDLER_SHIFT,
  HEAD_SIZE,
  HEADER_SIZE_MAX,
  KIND_CREDIT,
  KIND_MASK,
  KIND_REPLY,
  KIND_REQUEST,
  KIND_RETURN,
  NO_SLOT,
  RUN_COUNT_SHIFT,
  RUN_FIRST_MASK,
  SLOT_SHIFT,
  WORD_COUNT_MASK,
  WORD_COUNT_SHIFT,
  WORDS_MAX,
} from './message-layout.ts'
import { UNDELIVERABLE } from './undeliverable.ts'
import { NO_WORDS, type Words } from './words.ts'

export type { ChannelOwner } from './channel-owner.ts'

export const CREDITS_DEFAULT = 64

export interface ChannelOptions {
  /** Requests in flight each way; both sides must use the same number. */
  readonly credits?: number
  /** Largest payload of a medium message that this side sends and accepts, if that is less than a frame holds. */
  readonly mediumMax?: number
  readonly owner: ChannelOwner
}

/** `gone`: the peer has ended; requests under way return to the program. */
export type ChannelState = 'open' | 'closed' | 'broken' | 'gone'

export class Channel implements FrameSink {
  readonly end: VirtualInterface
  /** Largest payload of a medium message that this side sends and accepts, whatever else the message carries. */
  readonly mediumMax: number
  readonly owner: ChannelOwner
  state: ChannelState = 'open'
  // The event loop's notes.
  lastActiveMs = 0
  /** Until then the peer may be copying from this side's memory: its answer is worth spinning for. */
  peerCopiesUntilMs = 0
  isHot = false
  /** The next turn has something to do here. */
  isTouched = false
  /** Something was sent since the last turn: an answer may come soon. */
  hasSent = false
  /** Whether the poller may call `poll` and `deliver` apart: if no handler is the program's own. */
  readonly hasHalves: boolean = true
  /** The accepting end of a channel of this thread to itself: polled before the others. */
  isFirst = false
  /** Both ends are of this thread, which does not flood itself: what it sends is handled in one turn. */
  isOwn = false
  /** Messages handled since the last `deliver`, and bytes of frames since the event loop counted them. */
  protected polledCount = 0
  polledBytes = 0
  /** Whether the peer may send requests without a credit: only where something else bounds them. */
  protected readonly acceptsOneWay: boolean = true
  /** Set by the poller: a thread that waits for an answer may spin. */
  maySpin = true

  protected readonly handlers: HandlerTable
  protected readonly message = new Message(this)
  protected readonly slots: CreditSlots
  protected readonly acks: AckQueue
  protected readonly writer: FrameWriter
  protected readonly answers: AnswerQueue
  /** Replies that the peer has not sent back so far. */
  protected repliesSent = 0
  private wake: (channel: Channel) => void = () => {}
  /** Of the one-way request that is being built: bytes before its payload. */
  private headerLength = 0

  constructor(end: VirtualInterface, handlers: HandlerTable, options: ChannelOptions) {
    const credits = options.credits ?? CREDITS_DEFAULT
    assertCredits(credits)
    this.end = end
    this.owner = options.owner
    const payloadMax = end.capabilities.frameMax - HEADER_SIZE_MAX
    this.mediumMax = Math.min(payloadMax, options.mediumMax ?? payloadMax)
    this.handlers = handlers
    this.slots = new CreditSlots(credits)
    this.acks = new AckQueue(credits)
    this.writer = new FrameWriter(end, this.acks)
    this.answers = new AnswerQueue(this.writer, this.acks)
  }

  /** The channel has ended for good. */
  get isOver(): boolean {
    return this.state !== 'open'
  }

  /** A handler runs, and the payload that it looks at lies in the interface's memory. */
  get isInHandler(): boolean {
    return this.message.isLive
  }

  get creditsLeft(): number {
    return this.slots.freeCount
  }

  /** Where the payload of a reserved message is written, from the offset that `reserveRequest` returned. */
  get sendBytes(): Uint8Array {
    return this.end.sendBytes
  }

  /** Set by the poller: schedules a turn for this channel. */
  setWake(wake: (channel: Channel) => void): void {
    this.wake = wake
  }

  /** There is something to do: schedules a turn of the poller. */
  touch(): void {
    this.isTouched = true
    if (!this.isHot) this.wake(this)
  }

  /**
   * Begins a request that is built in place: returns where its payload goes in `sendBytes`, or a negative status. Then
   * `putWord` each word, write the payload, and `commit` how much of it there is. Nothing else may be sent in between.
   */
  reserveRequest(handler: number, wordCount: number, payloadLength: number): number {
    if (handler !== (handler & HANDLER_MASK) || wordCount > WORDS_MAX || payloadLength > this.mediumMax) {
      throw rangeError(`handler ${handler}, ${wordCount} words, ${payloadLength} bytes`)
    }
    const refusal = this.refusal()
    if (refusal !== 0) return refusal
    const at = this.writer.reserve(KIND_REQUEST, handler, this.slots.next, wordCount, 0, payloadLength)
    if (at >= 0) this.slots.acquire()
    return at
  }

  /**
   * As `reserveRequest`, for a request of two to four words that takes no credit and cannot be answered. `commitOneWay` sends
   * it.
   */
  reserveOneWay(
    handler: number,
    wordCount: number,
    a: number,
    b: number,
    c: number,
    d: number,
    payloadLength: number,
  ): number {
    if (this.state !== 'open') return this.state === 'broken' ? BROKEN : CLOSED
    if (this.answers.queued.length > 0 && !this.answers.flush()) return NO_RESOURCE
    const header = (HEAD_SIZE + 4 * wordCount + 7) & ~7
    const at = this.end.reserve(header + payloadLength)
    if (at < 0) return at
    const words = this.end.sendWords
    const headAt = at >> 2
    words[headAt] =
      KIND_REQUEST | (wordCount << WORD_COUNT_SHIFT) | (handler << HANDLER_SHIFT) | (NO_SLOT << SLOT_SHIFT)
    words[headAt + 1] = this.acks.pending > 0 ? this.acks.dequeueRun() : 0
    words[headAt + 2] = a
    words[headAt + 3] = b
    if (wordCount > 2) words[headAt + 4] = c
    if (wordCount > 3) words[headAt + 5] = d
    this.headerLength = header
    return at + header
  }

  putWord(index: number, word: number): void {
    this.writer.putWord(index, word)
  }

  /** Sends a reserved request, with `payloadLength` bytes of payload. */
  commit(payloadLength: number): void {
    this.writer.commit(payloadLength)
    // An answer may come soon. Where spinning does not pay, the doorbell brings it.
    this.hasSent = true
    if (this.maySpin && !this.isHot) this.wake(this)
  }

  /** Sends a reserved one-way request. */
  commitOneWay(payloadLength: number): void {
    this.end.commit(this.headerLength + payloadLength)
    this.hasSent = true
    if (this.maySpin && !this.isHot) this.wake(this)
  }

  /** Up to `limit` messages, then whatever waits for room or credit. Returns how many; `BROKEN`/`CLOSED` if it was before. */
  progress(limit: number): number {
    if (this.state !== 'open') return this.state === 'broken' ? BROKEN : CLOSED
    this.poll(limit)
    return this.deliver()
  }

  /** The first half of `progress`, while this is open: handles up to `limit` messages. Returns how many. */
  poll(limit: number): number {
    const wasTouched = this.isTouched
    // If a handler throws, the error goes to the program, and the channel goes on with its next turn.
    this.isTouched = true
    const count = this.end.poll(this, limit)
    if (count > 0) this.polledCount += count
    else if (count === BROKEN && this.state === 'open') this.break(this.end.failure)
    if (this.state === 'open' && this.mayOwe() && this.sendOwed() && this.creditsAreDue()) this.sendCredits()
    this.isTouched = wasTouched
    return count
  }

  /** The second half: the owner delivers and resumes sending. Returns how many messages `poll` has handled. */
  deliver(): number {
    const count = this.polledCount
    this.polledCount = 0
    this.isTouched = false
    this.owner.handleProgress()
    return count
  }

  /** Arms the doorbell; false if there is something to do instead of sleeping. */
  arm(): boolean {
    if (this.state !== 'open') return true
    return this.end.arm(this.roomForSleep())
  }

  close(): void {
    this.leave('closed')
    this.wake = () => {}
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    if (this.state !== 'open') return
    this.polledBytes += length
    if (length < HEAD_SIZE) return this.refuse(`a frame of ${length} bytes`)
    const words = this.end.receiveWords
    const head = words[offset >> 2] as number
    const run = words[(offset >> 2) + 1] as number
    const wordCount = (head >> WORD_COUNT_SHIFT) & WORD_COUNT_MASK
    const extra = EXTRA_SIZES[head & (KIND_MASK | FLAG)] as number
    const header = (HEAD_SIZE + extra + 4 * wordCount + 7) & ~7
    if (wordCount > WORDS_MAX || header > length) {
      return this.refuse(`a message head of 0x${(head >>> 0).toString(16)} in ${length} bytes`)
    }
    if (run !== 0 && !this.releaseRun(run)) return
    const { message } = this
    const wordsAt = (offset + HEAD_SIZE + extra) >> 2
    for (let i = 0; i < wordCount; i++) message.words[i] = words[wordsAt + i] as number
    message.wordCount = wordCount
    const kind = head & KIND_MASK
    const handler = (head >> HANDLER_SHIFT) & HANDLER_MASK
    const slot = head >>> SLOT_SHIFT
    const extraAt = (offset + HEAD_SIZE) >> 2
    const payloadAt = offset + header
    if (slot === NO_SLOT && kind === KIND_REQUEST) {
      const run = this.handlers.oneWay[handler]
      if (run === undefined || (head & FLAG) !== 0 || length - header > this.mediumMax || !this.acceptsOneWay)
        return this.refuse('a one-way request that cannot be delivered')
      this.handlers.runs++
      run.call(this.owner, message.words, wordCount, bytes, payloadAt, length - header)
    } else if (kind === KIND_REQUEST) {
      this.handleRequest(head, extraAt, handler, slot, bytes, payloadAt, length - header)
    } else if (kind === KIND_REPLY && (head & FLAG) === 0) {
      this.handleReply(handler, slot, bytes, payloadAt, length - header)
    } else if (kind === KIND_CREDIT) {
      this.handleCredits(payloadAt, length - header)
    } else {
      this.handleOther(head, extraAt, bytes, payloadAt, length - header)
    }
  }

  /** For `Message`: answers the request in `slot`. Never refused: an answer without room is queued as a copy. */
  sendReply(slot: number, handler: number, words: Words, payload: Uint8Array | undefined): void {
    if (!Number.isInteger(handler) || handler < 1 || handler > HANDLER_MASK) assertReplyHandler(handler)
    if (this.state !== 'open') return
    this.repliesSent++
    if (!this.answers.send(KIND_REPLY, slot, handler, words, payload)) this.touch()
  }

  /** For `Message`: answers into the requester's segment. Only endpoints have segments. */
  sendReplyLong(_slot: number, _handler: number, _words: Words, _payload: Uint8Array, _offset: number): void {
    throw rangeError('there is no segment behind this channel')
  }

  /** A deferred request is done with, without an answer. */
  release(slot: number): void {
    if (this.state !== 'open') return
    this.acks.add(slot)
    this.touch()
  }

  // For the layer above.

  /** 0 if a request may be sent now, else a negative status. Earlier messages must not be overtaken. */
  protected refusal(): number {
    if (this.state !== 'open') return this.state === 'broken' ? BROKEN : CLOSED
    if (this.answers.queued.length > 0 && !this.answers.flush()) return NO_RESOURCE
    return this.slots.freeCount === 0 ? NO_CREDIT : 0
  }

  protected sendAnswer(
    kind: number,
    slot: number,
    handler: number,
    words: Words,
    payload?: Uint8Array,
  ): void {
    if (!this.answers.send(kind, slot, handler, words, payload)) this.touch()
  }

  /** A request of the peer begins; if it may not, the channel is broken. */
  protected beginRequest(slot: number): boolean {
    if (this.acks.begin(slot)) return true
    this.refuse('a request without a credit')
    return false
  }

  /** Runs the handler of a request that has begun, if there is one. */
  protected runRequest(
    handlerIndex: number,
    slot: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const { handlers, message } = this
    const handler = handlers.callable(handlerIndex)
    if (handler === undefined) return this.sendReturn(slot, UNDELIVERABLE.NO_SUCH_HANDLER)
    handlers.runs++
    message.begin(handlerIndex, slot, bytes, offset, length)
    try {
      handler(message)
    } finally {
      if (message.finish() && this.state === 'open') this.acks.add(slot)
    }
  }

  /** Runs the handler of a message that is no request: it cannot be answered. */
  protected runReply(
    handlerIndex: number,
    handler: Handler,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    this.handlers.runs++
    this.message.begin(handlerIndex, -1, bytes, offset, length)
    try {
      handler(this.message)
    } finally {
      this.message.finish()
    }
  }

  protected handleReply(
    handlerIndex: number,
    slot: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    if (!this.slots.release(slot)) return this.refuse('a reply without a request')
    const handler = this.handlers.get(handlerIndex)
    if (handler === undefined) return this.refuse(`a reply to handler ${handlerIndex}, which is not there`)
    this.runReply(handlerIndex, handler, bytes, offset, length)
  }

  /** What endpoints know and plain channels do not. */
  protected handleOther(
    head: number,
    _extraAt: number,
    _bytes: Uint8Array,
    _payloadAt: number,
    _length: number,
  ): void {
    this.refuse(`a message head of 0x${(head >>> 0).toString(16)}`)
  }

  /** Whether the tag of a request, its low word at `extraAt`, is ours: plain channels have none. */
  protected isOwnTag(head: number, _extraAt: number): boolean {
    return (head & FLAG) === 0
  }

  /** The peer releases a slot without an answer; false if it may not. */
  protected releaseSlot(slot: number): boolean {
    return this.slots.release(slot)
  }

  /** Cheaper than `sendOwed` and `creditsAreDue`: false if neither has anything to send. */
  protected mayOwe(): boolean {
    return this.acks.pending > 0 || this.answers.queued.length > 0
  }

  /** Sends what the peer waits for; true if nothing of it is left. */
  protected sendOwed(): boolean {
    return this.answers.flush()
  }

  /** Bytes of room without which what is owed cannot go out, or 0. */
  protected roomOwed(): number {
    if (this.answers.queued.length > 0) return this.answers.roomWanted
    return this.acks.pending > 0 && this.creditsAreDue() ? HEAD_SIZE + 4 * CREDIT_RUNS_MAX : 0
  }

  protected creditsAreDue(): boolean {
    return this.acks.areDue(this.slots.size)
  }

  protected sendCredits(): boolean {
    const at = this.writer.reserve(KIND_CREDIT, 0, 0, 0, 0, 4 * CREDIT_RUNS_MAX)
    if (at < 0) return false
    this.writer.commit(4 * this.acks.dequeueRuns(this.end.sendWords, at >> 2, CREDIT_RUNS_MAX))
    return true
  }

  /** Closes the interface; no message is handled afterwards. */
  protected leave(state: 'closed' | 'broken' | 'gone'): void {
    if (this.state === 'closed') return
    this.state = state
    if (state === 'broken') this.end.cutOff?.()
    this.end.close()
  }

  /** Ends the channel: the peer broke the protocol. */
  protected refuse(what: string): void {
    this.break(new Error(what))
  }

  protected break(cause: Error | undefined): void {
    this.leave('broken')
    this.owner.handleBroken(violationOf(cause))
  }

  private handleRequest(
    head: number,
    extraAt: number,
    handler: number,
    slot: number,
    bytes: Uint8Array,
    payloadAt: number,
    length: number,
  ): void {
    if (this.handlers.oneWay[handler] !== undefined)
      return this.refuse(`a request for one-way handler ${handler}`)
    if (!this.beginRequest(slot)) return
    if (!this.isOwnTag(head, extraAt)) return this.sendReturn(slot, UNDELIVERABLE.BAD_TAG)
    if (length > this.mediumMax) return this.sendReturn(slot, UNDELIVERABLE.TOO_LONG)
    this.runRequest(handler, slot, bytes, payloadAt, length)
  }

  sendReturn(slot: number, reason: number): void {
    if (this.state === 'open') this.sendAnswer(KIND_RETURN, slot, reason, NO_WORDS)
  }

  /** The peer releases a run of slots. False, and the channel is broken, if they were not in use. */
  private releaseRun(run: number): boolean {
    const count = run >>> RUN_COUNT_SHIFT
    let slot = run & RUN_FIRST_MASK
    for (let i = 0; i < count; i++) {
      if (!this.releaseSlot(slot)) {
        this.refuse('more credits came back than were spent')
        return false
      }
      slot = slot + 1 === this.slots.size ? 0 : slot + 1
    }
    return true
  }

  private handleCredits(offset: number, length: number): void {
    if ((length & 3) !== 0 || length > 4 * CREDIT_RUNS_MAX) return this.refuse(`credits in ${length} bytes`)
    for (let at = offset; at < offset + length; at += 4) {
      if (!this.releaseRun(this.end.receiveWords[at >> 2] as number)) return
    }
  }

  private roomForSleep(): number {
    const owed = this.roomOwed()
    if (owed > 0) return owed
    // Where everything takes a credit, no room helps without one: the frame that brings the credit wakes this side.
    const wanted = this.slots.freeCount === 0 && !this.acceptsOneWay ? 0 : this.owner.roomWanted()
    return wanted === 0 ? 0 : Math.min(HEADER_SIZE_MAX + wanted, this.end.capabilities.frameMax)
  }
}
