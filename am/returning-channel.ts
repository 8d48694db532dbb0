/**
 * A channel that loses no request silently. It keeps each request until the peer has finished it, and gives an
 * undeliverable one back to the program with the reason. It also checks tags and settles calls.
 */
import {
  BROKEN,
  copyBytes,
  NO_CREDIT,
  NO_RESOURCE,
  OK,
  openLog,
  type Status,
  type VirtualInterface,
} from '../nic/index.ts'
import { Channel, type ChannelOptions } from './channel.ts'
import { ChannelCounts } from './channel-counts.ts'
import { violationOf } from './errors.ts'
import type { Handler, HandlerTable } from './handler-table.ts'
import { KeptSlots } from './kept-slots.ts'
import type { Mapping } from './mapping.ts'
import {
  FLAG,
  HANDLER_MASK,
  HANDLER_SHIFT,
  HEADER_SIZE_MAX,
  KIND_BOUNCE,
  KIND_GET,
  KIND_MASK,
  KIND_REQUEST,
  KIND_RETURN,
  SLOT_SHIFT,
  TAG_SIZE,
} from './message-layout.ts'
import { ReadyWaiters } from './ready-waiters.ts'
import { ReliableInterface } from './reliability/reliable-interface.ts'
import { type PendingCall, RequestLog } from './request-log.ts'
import type { Tag } from './tag.ts'
import { UNDELIVERABLE, type UndeliverableReason, undeliverableReason } from './undeliverable.ts'
import { Words } from './words.ts'

const logReturn = openLog('fastsockets:am:returned')

/** Polls without a message after which pending acknowledgements go alone, however few. */
const LULL_POLLS = 16

/** Words of a reply that goes back to its sender. */
const bouncedWords = new Words()

/** Of this thread: channels that may be running a handler. Handlers may reply, and nothing else. */
export const running = { channels: 0 }

export interface ReturningChannelOptions extends ChannelOptions {
  readonly tag: Tag
}

export class ReturningChannel extends Channel {
  override readonly hasHalves = false
  protected override readonly acceptsOneWay = false
  readonly counts = new ChannelCounts()
  /** Replies that this side has sent back, and replies of this side that came back, so far. */
  repliesSentBack = 0
  repliesReturned = 0
  /** Set by am/rpc: called once, when the conversation is over: with the reason if the peer is gone, or `CLOSED` by us. */
  onOver: ((reason: UndeliverableReason | 'CLOSED') => void) | undefined
  protected readonly log: RequestLog
  readonly #tag: Tag
  readonly #kept: KeptSlots
  readonly #waiters = new ReadyWaiters()
  /** Payload bytes of the last request without room; while a caller waits, of the largest. */
  #roomRefused = 0
  #emptyPolls = 0
  /** Reason of the loss once the receive queue is empty: the peer will send nothing more. 0 before. */
  #endReason = 0
  /** Reason for which all requests come back once the peer is gone; 0 before. */
  #goneReason = 0

  constructor(end: VirtualInterface, handlers: HandlerTable, options: ReturningChannelOptions) {
    super(end, handlers, options)
    this.#tag = options.tag
    this.log = new RequestLog(this.slots.size)
    this.#kept = new KeptSlots(this.slots.size)
  }

  override get isOver(): boolean {
    return this.state !== 'open' && this.#kept.count === 0
  }

  /** Requests that have neither been answered nor acknowledged. */
  get outstanding(): number {
    return this.slots.size - this.slots.freeCount
  }

  /** Nothing waits in this process to be sent or retransmitted. */
  get isFlushed(): boolean {
    if (this.state !== 'open') return true
    const unacknowledged = this.end instanceof ReliableInterface ? this.end.unacknowledged : 0
    return unacknowledged === 0 && this.roomOwed() === 0
  }

  /** Sends what is queued in this process, and handles no message; true if nothing is left. */
  flush(): boolean {
    if (this.state !== 'open') return true
    if (this.sendOwed() && this.creditsAreDue()) this.sendCredits()
    // A poll retransmits lost frames.
    if (running.channels === 0) this.end.poll(this, 0)
    return this.isFlushed
  }

  /** Whether a refused request may succeed now. */
  get isReady(): boolean {
    if (this.refusal() !== OK) return false
    return this.state !== 'open' || this.end.hasRoom(HEADER_SIZE_MAX + this.#roomRefused)
  }

  /** Payload bytes for which a caller waits to have room; 0 if no caller waits. */
  get roomWanted(): number {
    return this.#waiters.waiting.size === 0 ? 0 : Math.max(1, this.#roomRefused)
  }

  get waiters(): ReadyWaiters {
    return this.#waiters
  }

  /** Sends a short or medium request. The payload is copied. */
  send(
    mapping: Mapping,
    handler: number,
    words: Words,
    payload: Uint8Array | undefined,
    call: PendingCall | undefined,
  ): Status {
    const refusal = this.refusal()
    if (refusal !== OK) return this.countRefusal(refusal)
    const length = payload === undefined ? 0 : payload.length
    const { slots, writer } = this
    const slot = slots.next
    const reason = this.#goneReason || (length > this.mediumMax ? UNDELIVERABLE.TOO_LONG : 0)
    if (reason === 0) {
      const { tag } = mapping
      const kind = tag.isZero ? KIND_REQUEST : KIND_REQUEST | FLAG
      const extra = tag.isZero ? 0 : TAG_SIZE
      const at = writer.reserve(kind, handler, slot, words.count, extra, length, words, tag)
      if (at < 0) return this.refuseForRoom(at, length)
      if (payload !== undefined) copyBytes(payload, 0, this.end.sendBytes, at, length)
    }
    slots.acquire()
    this.log.record(slot, KIND_REQUEST, mapping.index, handler, words, call)
    // The payload of a call does not come back to its program.
    if (payload !== undefined && call === undefined) this.log.copy(slot, payload)
    this.counts.requests++
    this.counts.payloadBytes += length
    if (reason === 0) this.commit(length)
    else this.bringBack(slot, reason)
    return OK
  }

  override progress(limit: number): number {
    running.channels++
    try {
      const returned = this.#kept.count === 0 ? 0 : this.#deliverKept(limit)
      if (this.state !== 'open') {
        this.owner.handleProgress()
        return returned
      }
      this.poll(limit)
      const count = this.deliver()
      this.#emptyPolls = count > 0 ? 0 : this.#emptyPolls + 1
      if (count === 0 && this.#endReason !== 0) {
        this.lose(this.#endReason)
        // If no request comes back, no further turn would notify the owner.
        this.owner.handleProgress()
      }
      return returned + count
    } finally {
      running.channels--
      if (this.#waiters.waiting.size > 0 && this.isReady) this.#wakeWaiters()
    }
  }

  override arm(): boolean {
    if (this.#kept.count > 0 || (this.#endReason !== 0 && this.state === 'open')) return false
    this.#emptyPolls = LULL_POLLS
    if (this.state === 'open' && this.acks.pending > 0) this.sendCredits()
    return super.arm()
  }

  /** The peer will send nothing more. Frames in the receive queue are still handled. */
  expectEnd(reason: number): void {
    this.#endReason = reason
    this.end.expectEnd?.()
    this.touch()
  }

  /** The peer is gone: requests under way come back, and so do all later ones. */
  lose(reason: number): void {
    if (this.state !== 'open') return
    this.leave('gone')
    this.#goneReason = reason
    for (let slot = 0; slot < this.slots.size; slot++) {
      if (this.slots.isOut(slot)) this.bringBack(slot, reason)
    }
    this.touch()
    this.#end(undeliverableReason(reason) ?? 'PEER_DEAD')
  }

  override close(): void {
    if (this.state === 'open' && this.acks.pending > 0) this.sendCredits()
    super.close()
    this.#waiters.refuse()
    for (let slot = 0; slot < this.slots.size; slot++) this.log.settle(slot)?.handleClosed()
    this.#end('CLOSED')
  }

  // For subclasses.

  /** Reason for which all requests come back; 0 while the peer is there. */
  protected get goneReason(): number {
    return this.#goneReason
  }

  protected override refusal(): number {
    if (this.state === 'open') {
      if (this.answers.queued.length > 0 && !this.answers.flush()) return NO_RESOURCE
    } else if (this.state !== 'gone') return super.refusal()
    return this.slots.freeCount === 0 ? NO_CREDIT : OK
  }

  protected countRefusal(refusal: number): Status {
    if (refusal === NO_CREDIT) this.counts.refusedForCredit++
    else this.counts.refusedForRoom++
    return refusal as Status
  }

  /** `length`: payload bytes of the frame for which there is no room. */
  protected refuseForRoom(status: number, length: number): Status {
    this.#roomRefused = this.#waiters.waiting.size === 0 ? length : Math.max(length, this.#roomRefused)
    // The interface has failed: end the channel. The same request, tried again, comes back.
    if (status === BROKEN) this.break(this.end.failure)
    return this.countRefusal(NO_RESOURCE)
  }

  /** Brings the slot's request back to this program in the next turn. Reason 0: a get that is complete. */
  protected bringBack(slot: number, reason: number): void {
    this.slots.keep(slot)
    this.#kept.push(slot, reason)
    this.touch()
  }

  /** Ends a request that the peer's handler did not answer. */
  protected finish(slot: number, reason: number): void {
    const { log, message } = this
    const handlerIndex = log.handlers[slot] as number
    const length = log.lengths[slot] as number
    const destination = log.destinations[slot] as number
    const memory = log.payloadMemory(slot)
    message.wordCount = log.copyWords(slot, message.words)
    const call = log.settle(slot)
    this.slots.releaseKept(slot)
    const name = undeliverableReason(reason) ?? 'NO_SUCH_HANDLER'
    this.counts.returned++
    logReturn('a request for handler %d at %s came back: %s', handlerIndex, this.owner.peerName, name)
    if (call !== undefined) return call.handleReturn(name)
    this.#runReturned(handlerIndex, name, destination, memory, 0, length)
  }

  /** Reason to send back a reply to the request in `slot`; 0 if a handler or a call accepts it. */
  protected faultOfReply(handlerIndex: number, slot: number): number {
    const isAccepted =
      this.log.calls[slot] !== undefined || this.handlers.callable(handlerIndex) !== undefined
    return isAccepted ? 0 : UNDELIVERABLE.NO_SUCH_HANDLER
  }

  /** A reply ends its request; the waiting call or the handler receives it. */
  protected deliverReply(
    handlerIndex: number,
    slot: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const call = this.log.settle(slot)
    this.slots.release(slot)
    if (call === undefined) {
      const handler = this.handlers.get(handlerIndex) as Handler
      return this.runReply(handlerIndex, handler, bytes, offset, length)
    }
    this.handlers.runs++
    this.message.begin(handlerIndex, -1, bytes, offset, length)
    call.handleReply(this.message)
    this.message.finish()
  }

  /** An undeliverable reply also ends its request, and goes back to its sender. */
  protected bounce(
    reason: number,
    handlerIndex: number,
    slot: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    this.log.settle(slot)?.handleNoReply()
    this.slots.release(slot)
    this.repliesSentBack++
    bouncedWords.setArray([...this.message.words.subarray(0, this.message.wordCount)])
    const payload = bytes.subarray(offset, offset + length)
    this.sendAnswer(KIND_BOUNCE, reason, handlerIndex, bouncedWords, payload)
  }

  protected override break(cause: Error | undefined): void {
    this.lose(UNDELIVERABLE.PEER_DEAD)
    this.owner.handleBroken(violationOf(cause))
  }

  protected override creditsAreDue(): boolean {
    return super.creditsAreDue() || (this.#emptyPolls >= LULL_POLLS && this.acks.pending > 0)
  }

  protected override isOwnTag(head: number, extraAt: number): boolean {
    if ((head & FLAG) === 0) return this.#tag.isZero
    const words = this.end.receiveWords
    return words[extraAt] === this.#tag.low && words[extraAt + 1] === this.#tag.high
  }

  protected override handleReply(
    handlerIndex: number,
    slot: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    if (!this.slots.isOut(slot)) return this.refuse('a reply without a request')
    if (this.log.kinds[slot] === KIND_GET) return this.finish(slot, 0)
    const isAccepted =
      this.log.calls[slot] !== undefined || this.handlers.callable(handlerIndex) !== undefined
    if (isAccepted && length <= this.mediumMax)
      return this.deliverReply(handlerIndex, slot, bytes, offset, length)
    const reason = isAccepted ? UNDELIVERABLE.TOO_LONG : UNDELIVERABLE.NO_SUCH_HANDLER
    this.bounce(reason, handlerIndex, slot, bytes, offset, length)
  }

  protected override handleOther(
    head: number,
    extraAt: number,
    bytes: Uint8Array,
    payloadAt: number,
    length: number,
  ): void {
    const kind = head & KIND_MASK
    const handler = (head >> HANDLER_SHIFT) & HANDLER_MASK
    const slot = head >>> SLOT_SHIFT
    if (kind === KIND_RETURN) this.#handleReturn(slot, handler)
    else if (kind === KIND_BOUNCE) this.#handleBounce(slot, handler, bytes, payloadAt, length)
    else super.handleOther(head, extraAt, bytes, payloadAt, length)
  }

  protected override releaseSlot(slot: number): boolean {
    // A GET is always answered: an acknowledgement may not give its slot back.
    if (this.log.kinds[slot] === KIND_GET || !this.slots.release(slot)) return false
    this.log.settle(slot)?.handleNoReply()
    return true
  }

  #end(reason: UndeliverableReason | 'CLOSED'): void {
    const { onOver } = this
    this.onOver = undefined
    onOver?.(reason)
  }

  #deliverKept(limit: number): number {
    let count = 0
    while (this.#kept.count > 0 && count < limit) {
      const slot = this.#kept.firstSlot
      const reason = this.#kept.firstReason
      this.#kept.shift()
      count++
      this.finish(slot, reason)
    }
    return count
  }

  /** Wakes as many waiters as there are credits: the others would only be refused again. */
  #wakeWaiters(): void {
    this.#roomRefused = 0
    this.#waiters.wake(this.slots.freeCount)
    // Woken callers may not use their credits: then the next turn wakes the others.
    if (this.#waiters.waiting.size > 0) this.touch()
  }

  #handleReturn(slot: number, reason: number): void {
    if (!this.slots.isOut(slot) || undeliverableReason(reason) === undefined) {
      return this.refuse(`slot ${slot} came back for reason ${reason}`)
    }
    this.finish(slot, reason)
  }

  #handleBounce(
    reason: number,
    handlerIndex: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const name = undeliverableReason(reason)
    if (name === undefined || this.repliesSent === 0) {
      return this.refuse(`one of ${this.repliesSent} replies came back for reason ${reason}`)
    }
    this.repliesSent--
    this.repliesReturned++
    this.counts.returned++
    logReturn('a reply for handler %d at %s came back: %s', handlerIndex, this.owner.peerName, name)
    this.#runReturned(handlerIndex, name, this.owner.destination, bytes, offset, length)
  }

  /** Runs handler 0 for a returned message, if the program has set one. */
  #runReturned(
    handlerIndex: number,
    reason: NonNullable<ReturnType<typeof undeliverableReason>>,
    destination: number | undefined,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const handler = this.handlers.get(0)
    if (handler === undefined) return
    this.message.begin(handlerIndex, -1, bytes, offset, length)
    this.message.markReturned(reason, destination)
    this.#runReturn(handler)
  }

  #runReturn(handler: Handler): void {
    this.handlers.runs++
    try {
      handler(this.message)
    } finally {
      this.message.finish()
    }
  }
}
