/**
 * ZCopy: large chunks of a write are not sent but offered, and the receiver fetches them from the writer's memory, in one
 * copy (SDP for Windows 2006, section 4: SrcAvail, RdCompl). One chunk of a stream at a time is on offer.
 */
import type { Registration } from '../../../nic/index.ts'
import type { Outgoing } from '../outgoing.ts'
import type { Stream } from '../stream.ts'
import { OFFER_MAX } from '../stream-layout.ts'
import { sendSourceAvailable } from '../stream-messages.ts'
import { MAY_BE_READ, tryRegister } from './one-sided.ts'
import { THRESHOLD_MIN } from './threshold.ts'

/** Bytes that are copied after an offer that was not taken: twice as many each time, up to the second number. */
const COPY_RUN_MIN = 1 << 20
const COPY_RUN_MAX = 1 << 26

/** The sender's half, for one stream: when a chunk is offered instead of sent, and what becomes of it. */
export class ChunkOffers {
  readonly #stream: Stream
  readonly #outgoing: Outgoing
  /** The chunk on offer: its memory must not be changed meanwhile. */
  #offer: Registration | undefined
  /** How long it was then: the writer may let go of its buffer, not of its bytes. */
  #length = 0
  /** Bytes that go as data before the next offer, and how many it will be if that one is not taken. */
  #copyLeft = 0
  #copyNext = COPY_RUN_MIN

  constructor(stream: Stream, outgoing: Outgoing) {
    this.#stream = stream
    this.#outgoing = outgoing
  }

  /** Nothing else of this stream may be sent meanwhile. */
  get isOut(): boolean {
    return this.#offer !== undefined
  }

  /** Whether the chunk that is next should be offered. */
  get isWanted(): boolean {
    const length = this.#outgoing.pending.nextLength
    return length >= THRESHOLD_MIN && this.#copyLeft <= 0 && length >= this.#stream.channel.offerMin
  }

  noteCopied(length: number): void {
    this.#copyLeft -= length
  }

  /** Offers it; if there is no room for the message, again later. False if its memory cannot be offered: it is copied. */
  send(): boolean {
    const { channel, receiving, peerId } = this.#stream
    const { pending, window } = this.#outgoing
    const offer = tryRegister(channel.channel.end, pending.next(OFFER_MAX), MAY_BE_READ)
    if (offer === undefined) {
      this.#copy(0)
      return false
    }
    const { bytes, key } = offer
    const { length } = bytes
    if (!sendSourceAvailable(channel.channel, peerId, window.sequence, receiving.reported, length, key)) {
      offer.deregister()
      channel.scheduleSend(this.#stream)
      return true
    }
    this.#offer = offer
    this.#length = length
    window.offered = length
    receiving.noteReported()
    return true
  }

  /** The peer has fetched up to `sequence`, and wants the rest as data; returns how much it has, or -1 if it cannot be. */
  complete(sequence: number): number {
    const fetched = (sequence - this.#outgoing.window.sequence) | 0
    const offered = this.#offer === undefined ? -1 : this.#length
    if (fetched < 0 || fetched > offered) return -1
    this.drop()
    if (fetched === offered) this.#copyNext = COPY_RUN_MIN
    else this.#copy(offered - fetched)
    return fetched
  }

  /** The writer takes its memory back: the peer fetches nothing more of it, where it can be kept from that, and asks for the rest. */
  revoke(): void {
    this.#offer?.revoke()
  }

  /** Nothing is offered for a while, and not before `length` bytes more. */
  #copy(length: number): void {
    this.#copyLeft = Math.max(length, this.#copyNext)
    this.#copyNext = Math.min(2 * this.#copyNext, COPY_RUN_MAX)
  }

  /** The writer's memory is its own again. */
  drop(): void {
    this.#offer?.deregister()
    this.#offer = undefined
    this.#outgoing.window.offered = 0
  }
}
