import type { Outgoing } from './outgoing.ts'
import { Offer } from './rendezvous.ts'
import type { Stream } from './stream.ts'
import { OFFER_MAX } from './stream-layout.ts'
import { sendSourceAvailable } from './stream-messages.ts'

/** Bytes that are copied after an offer that was not taken: twice as many each time, up to the second number. */
const COPY_RUN_MIN = 1 << 20
const COPY_RUN_MAX = 1 << 26

/** The sending half of ZCopy for one stream: when a chunk is offered instead of sent, and what becomes of it. */
export class ChunkOffers {
  readonly #stream: Stream
  readonly #outgoing: Outgoing
  #offer: Offer | undefined
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
    return this.#copyLeft <= 0 && this.#outgoing.pending.nextLength >= this.#stream.channel.offerMin
  }

  noteCopied(length: number): void {
    this.#copyLeft -= length
  }

  send(): void {
    const { channel, receiving, peerId } = this.#stream
    const { pending, window } = this.#outgoing
    const offer = new Offer(channel.channel.end, pending.next(OFFER_MAX))
    const { length, key } = offer
    if (!sendSourceAvailable(channel.channel, peerId, window.sequence, receiving.consumed, length, key)) {
      offer.release()
      channel.scheduleSend(this.#stream)
      return
    }
    this.#offer = offer
    window.offered = length
    receiving.noteConsumedSent()
  }

  /** The peer has fetched up to `sequence`, and wants the rest as data; returns how much it has, or -1 if it cannot be. */
  complete(sequence: number): number {
    const fetched = (sequence - this.#outgoing.window.sequence) | 0
    const offered = this.#offer?.length ?? -1
    if (fetched < 0 || fetched > offered) return -1
    this.drop()
    if (fetched === offered) {
      this.#copyNext = COPY_RUN_MIN
    } else {
      this.#copyLeft = Math.max(offered - fetched, this.#copyNext)
      this.#copyNext = Math.min(2 * this.#copyNext, COPY_RUN_MAX)
    }
    return fetched
  }

  /** The writer's memory is its own again. */
  drop(): void {
    this.#offer?.release()
    this.#offer = undefined
    this.#outgoing.window.offered = 0
  }
}
