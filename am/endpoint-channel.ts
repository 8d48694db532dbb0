/** A channel between two endpoints: with long messages and gets between their segments. */
import { NO_RESOURCE, OK, type Status, type VirtualInterface } from '../nic/index.ts'
import { BulkTransfers } from './bulk-transfers.ts'
import { assertReplyHandler } from './checks.ts'
import type { HandlerTable } from './handler-table.ts'
import type { Mapping, RemoteSegment } from './mapping.ts'
import {
  FLAG,
  HANDLER_MASK,
  HANDLER_SHIFT,
  KIND_GET,
  KIND_LONG,
  KIND_MASK,
  KIND_PART,
  KIND_REPLY,
  SLOT_SHIFT,
} from './message-layout.ts'
import { assertPayload } from './payload.ts'
import { ReturningChannel, type ReturningChannelOptions } from './returning-channel.ts'
import { assertRegion, type Segment } from './segment.ts'
import { UNDELIVERABLE } from './undeliverable.ts'
import type { Words } from './words.ts'

export interface EndpointChannelOptions extends ReturningChannelOptions {
  readonly segment: Segment
  /** Largest payload of a long message that this endpoint accepts. */
  readonly longMax: number
}

export class EndpointChannel extends ReturningChannel {
  readonly #bulk: BulkTransfers
  readonly #longMax: number

  constructor(end: VirtualInterface, handlers: HandlerTable, options: EndpointChannelOptions) {
    super(end, handlers, options)
    this.#longMax = options.longMax
    this.#bulk = new BulkTransfers(this.writer, this.slots, this.acks, this.log, options)
  }

  /** Shares our segment with a peer that has shown our tag. Returns a key for one-sided access if the driver has it. */
  shareSegment(): Uint8Array | undefined {
    return this.#bulk.shareSegment()
  }

  /** Ends the access to our segment: the peer does not touch it any more. */
  releaseSegment(): void {
    this.#bulk.releaseSegment()
  }

  forgetPeerSegment(): void {
    this.#bulk.forgetPeerSegment()
  }

  /** The peer's segment; set when the peer has accepted our tag. */
  set peerSegment(segment: RemoteSegment) {
    this.#bulk.peerSegment = segment
  }

  /** Puts a payload into the peer's segment, then runs its handler. The caller may reuse the payload on return. */
  sendLong(mapping: Mapping, handler: number, words: Words, payload: Uint8Array, offset: number): Status {
    const refusal = this.refusal()
    if (refusal !== OK) return this.countRefusal(refusal)
    const slot = this.slots.next
    const reason = this.goneReason || this.#bulk.refusalOf(mapping, offset, payload.length, false)
    if (reason === 0) {
      const status = this.#bulk.sendLong(mapping, handler, slot, words, payload, offset)
      if (status < 0) return this.refuseForRoom(status, Math.min(payload.length, this.#bulk.partMax))
    }
    this.slots.acquire()
    this.log.record(slot, KIND_LONG, mapping.index, handler, words, undefined)
    this.log.borrow(slot, payload)
    this.counts.requests++
    this.counts.payloadBytes += payload.length
    if (reason === 0) this.touch()
    else this.bringBack(slot, reason)
    return OK
  }

  /** Copies bytes of the peer's segment into ours, then runs our own handler. */
  get(mapping: Mapping, handler: number, words: Words, offset: number, length: number, into: number): Status {
    const refusal = this.refusal()
    if (refusal !== OK) return this.countRefusal(refusal)
    const slot = this.slots.next
    const reason = this.goneReason || this.#bulk.refusalOf(mapping, offset, length, true)
    let isDone = false
    if (reason === 0) {
      isDone = this.#bulk.read(mapping, offset, length, into)
      const status = isDone ? OK : this.#bulk.sendGet(mapping, slot, offset, length)
      if (status < 0) return this.refuseForRoom(status, 0)
    }
    this.slots.acquire()
    this.log.record(slot, KIND_GET, mapping.index, handler, words, undefined)
    this.log.lengths[slot] = length
    this.log.offsets[slot] = into
    this.counts.requests++
    if (reason !== 0 || isDone) this.bringBack(slot, reason)
    else this.touch()
    return OK
  }

  override sendReplyLong(
    slot: number,
    handler: number,
    words: Words,
    payload: Uint8Array,
    offset: number,
  ): void {
    assertReplyHandler(handler)
    assertPayload(payload, this.#longMax)
    assertRegion(offset, payload.length)
    if (this.state !== 'open') return
    this.#bulk.sendReply(slot, handler, words, payload, offset)
    this.repliesSent++
    this.touch()
  }

  protected override refusal(): number {
    // A long message is still being sent in parts: later requests must not overtake it.
    if (this.#bulk.longJobs > 0) return NO_RESOURCE
    const isFree = this.state === 'open' && this.answers.queued.length === 0 && this.slots.freeCount > 0
    return isFree ? OK : super.refusal()
  }

  protected override mayOwe(): boolean {
    return this.acks.pending > 0 || this.answers.queued.length > 0 || this.#bulk.jobs.length > 0
  }

  protected override sendOwed(): boolean {
    return super.sendOwed() && this.#bulk.pump()
  }

  protected override roomOwed(): number {
    const owed = super.roomOwed()
    return owed === 0 && this.#bulk.jobs.length > 0 ? this.#bulk.roomWanted : owed
  }

  protected override leave(state: 'closed' | 'broken' | 'gone'): void {
    super.leave(state)
    this.#bulk.stop()
  }

  protected override finish(slot: number, reason: number): void {
    if (this.log.kinds[slot] !== KIND_GET) return super.finish(slot, reason)
    const handlerIndex = this.log.handlers[slot] as number
    const handler = reason === 0 ? this.handlers.get(handlerIndex) : undefined
    const length = this.log.lengths[slot] as number
    this.log.lengths[slot] = 0
    if (handler === undefined) return super.finish(slot, reason || UNDELIVERABLE.NO_SUCH_HANDLER)
    this.message.wordCount = this.log.copyWords(slot, this.message.words)
    this.slots.releaseKept(slot)
    this.runReply(handlerIndex, handler, this.#bulk.segmentBytes, this.log.offsets[slot] as number, length)
  }

  protected override handleOther(
    head: number,
    extraAt: number,
    bytes: Uint8Array,
    payloadAt: number,
    length: number,
  ): void {
    const kind = head & KIND_MASK
    if (kind !== KIND_LONG && kind !== KIND_PART && kind !== KIND_GET && kind !== KIND_REPLY) {
      return super.handleOther(head, extraAt, bytes, payloadAt, length)
    }
    const handler = (head >> HANDLER_SHIFT) & HANDLER_MASK
    const slot = head >>> SLOT_SHIFT
    const words = this.end.receiveWords
    const regionAt = kind !== KIND_REPLY && (head & FLAG) !== 0 ? extraAt + 2 : extraAt
    const offset = (words[regionAt] as number) >>> 0
    const size = (words[regionAt + 1] as number) >>> 0
    if (length !== 0 && length !== size) return this.refuse(`${length} bytes for a region of ${size}`)
    if (kind === KIND_REPLY)
      return this.#handleReplyLong(handler, slot, offset, size, bytes, payloadAt, length)
    const isOwnTag = this.isOwnTag(head, extraAt)
    if (kind === KIND_LONG) {
      this.#handleLong(isOwnTag, handler, slot, offset, size, bytes, payloadAt, length)
    } else if (kind === KIND_GET) {
      this.#handleGet(isOwnTag, slot, offset, size)
    } else if (!this.#bulk.handlePart(isOwnTag, slot, offset, bytes, payloadAt, length)) {
      this.refuse(`a part of ${length} bytes at ${offset} for slot ${slot}`)
    }
  }

  #handleLong(
    isOwnTag: boolean,
    handler: number,
    slot: number,
    offset: number,
    size: number,
    bytes: Uint8Array,
    payloadAt: number,
    length: number,
  ): void {
    if (!this.beginRequest(slot)) return
    const reason = isOwnTag ? this.#bulk.faultOfLong(offset, size) : UNDELIVERABLE.BAD_TAG
    if (reason !== 0) return this.sendReturn(slot, reason)
    if (this.handlers.callable(handler) === undefined)
      return this.sendReturn(slot, UNDELIVERABLE.NO_SUCH_HANDLER)
    if (length > 0) this.#bulk.put(offset, bytes, payloadAt, length)
    this.runRequest(handler, slot, this.#bulk.segmentBytes, offset, size)
  }

  #handleGet(isOwnTag: boolean, slot: number, offset: number, size: number): void {
    if (!this.beginRequest(slot)) return
    const reason = isOwnTag ? this.#bulk.faultOfGet(offset, size) : UNDELIVERABLE.BAD_TAG
    if (reason !== 0) return this.sendReturn(slot, reason)
    this.#bulk.answerGet(slot, offset, size)
    this.touch()
  }

  #handleReplyLong(
    handler: number,
    slot: number,
    offset: number,
    size: number,
    bytes: Uint8Array,
    payloadAt: number,
    length: number,
  ): void {
    if (!this.slots.isOut(slot) || this.log.kinds[slot] === KIND_GET) {
      return this.refuse('a long reply without a request')
    }
    const reason = this.#bulk.faultOfLong(offset, size) || this.faultOfReply(handler, slot)
    // Bytes that came in PARTs before the reply do not go back with it.
    if (reason !== 0) return this.bounce(reason, handler, slot, bytes, payloadAt, length)
    if (length > 0) this.#bulk.put(offset, bytes, payloadAt, length)
    this.deliverReply(handler, slot, this.#bulk.segmentBytes, offset, size)
  }
}
