/**
 * ZCopy of one stream: large chunks are not sent but offered, and the receiver fetches them from the writer's memory, in one
 * copy (SDP for Windows 2006, section 4). A stream makes its part of ZCopy when it first needs one.
 *
 *   writer                                          reader
 *   offer, SRC_AVAIL   one chunk at a time      ->  fetch, RD_COMPL: how far it came; the rest comes as DATA
 *   write, WR_COMPL    into a posted receive    <-  post, SINK_AVAIL
 *
 * A posted receive stands for one place of the stream, `sequence`: anything else that the sender sends there makes it void on
 * both sides, without a message.
 */
import type { Registration, RemoteMemory } from '../../../nic/index.ts'
import type { PendingChunks } from '../pending-chunks.ts'
import {
  FETCH_MAX,
  OFFER_MAX,
  RD_COMPL,
  SINK_AVAIL,
  SRC_AVAIL,
  THRESHOLD_MIN,
  WR_COMPL,
} from '../stream-layout.ts'
import type { StreamSink } from '../stream-sink.ts'

/** Bytes that are copied after an offer that was not taken: twice as many each time, up to the second number. */
const COPY_RUN_MIN = 1 << 20
const COPY_RUN_MAX = 1 << 26
/** A program that looks at each receive's bytes before it posts the next one has that many turns for it. */
const POST_TURNS = 3
const NO_KEY = new Uint8Array(0)

/** One-sided access to the peer's memory: each operation is over when it returns. */
export interface PeerMemory {
  /** False in threads whose memory may be reused while the peer still writes to it. */
  readonly mayPost: boolean
  /** Undefined if the key is none, or if it does not give `length` bytes for that use. */
  import(key: Uint8Array, length: number, use: 'remoteRead' | 'remoteWrite'): RemoteMemory | undefined
  /** Undefined if the device can pin no more memory: then bytes are copied. */
  register(bytes: Uint8Array, use: 'remoteRead' | 'remoteWrite'): Registration | undefined
  /** Fills `target`; false if the memory cannot be read. `isOnce`: `target` was made for this. */
  read(target: Uint8Array, from: RemoteMemory, at: number, isOnce: boolean): boolean
  /** Writes `source` to the beginning of `into`; false if the memory cannot be written. */
  write(source: Uint8Array, into: RemoteMemory): boolean
}

/** The stream, as far as ZCopy uses it. */
export interface ZcopyStream {
  readonly channel: {
    readonly memory: PeerMemory
    readonly offerMin: number
    readonly host: { allocate(length: number): Buffer }
  }
  /** Counts bytes that were received, or sent, by one-sided access. */
  readonly counts: { fetched(length: number): void; fetchedByPeer(length: number): void }
  readonly sink: StreamSink | undefined
  readonly pending: PendingChunks | undefined
  sendSequence: number
  receiveSequence: number
  /** Sends `handler` with `last` as its last word; false if there is no room. */
  sendPlace(handler: number, sequence: number, last: number, key: Uint8Array): boolean
  scheduleSend(): void
  scheduleDelivery(): void
  handOver(bytes: Buffer, isLent: boolean): void
  consume(length: number): void
}

export class Zcopy {
  private readonly stream: ZcopyStream

  /** The writer's chunk on offer, whose memory must not change meanwhile, and how long it was then. */
  private offer: Registration | undefined
  private offerLength = 0
  /** Bytes that go as data before the next offer, and how many it will be if that one is not taken. */
  private copyLeft = 0
  private copyNext = COPY_RUN_MIN

  /** The writer's: the peer's posted receive, and bytes that are there already and of which the peer does not know yet. */
  private target: RemoteMemory | undefined
  private targetSequence = 0
  private targetLength = 0
  private written = 0

  /** The reader's: the peer's chunk on offer, bytes of it that are not fetched, and where they begin. */
  private source: RemoteMemory | undefined
  private sourceLeft = 0
  private sourceAt = 0
  private sourceTurns = 0
  private isCompletionOwed = false

  /** The reader's: the buffer of a posted receive, which the peer may fill. */
  private posted: Registration | undefined
  private postedLength = 0
  /** The peer's last large chunk is no longer ago than the last receive. Otherwise receives are posted for nothing. */
  private isPostingWorthwhile = false

  constructor(stream: ZcopyStream) {
    this.stream = stream
  }

  // The writer's half.

  /** A chunk is on offer: nothing else of this stream may be sent meanwhile. */
  get isOffering(): boolean {
    return this.offer !== undefined
  }

  /** Bytes that the peer may fetch by itself, and so may have taken before it says so. */
  get offered(): number {
    return this.offer === undefined ? 0 : this.offerLength
  }

  /** Whether the next chunk, of `length` bytes, should be offered. */
  wantsOffer(length: number): boolean {
    return this.copyLeft <= 0 && length >= this.stream.channel.offerMin
  }

  noteCopied(length: number): void {
    this.copyLeft -= length
  }

  /** Offers the next chunk; without room for the message, again later. False if its memory cannot be offered: it is copied. */
  tryOffer(pending: PendingChunks): boolean {
    const { stream } = this
    const offer = stream.channel.memory.register(pending.next(OFFER_MAX), 'remoteRead')
    if (offer === undefined) {
      this.copyAtLeast(0)
      return false
    }
    const { length } = offer.bytes
    if (!stream.sendPlace(SRC_AVAIL, stream.sendSequence, length, offer.key)) {
      offer.deregister()
      stream.scheduleSend()
      return true
    }
    this.offer = offer
    this.offerLength = length
    return true
  }

  /** The peer has fetched up to `sequence`, and wants the rest as data; returns how much it has, or -1 if it cannot be. */
  completeOffer(sequence: number): number {
    const { stream } = this
    const fetched = (sequence - stream.sendSequence) | 0
    const offered = this.offer === undefined ? -1 : this.offerLength
    if (fetched < 0 || fetched > offered) return -1
    this.dropOffer()
    if (fetched === offered) this.copyNext = COPY_RUN_MIN
    else this.copyAtLeast(offered - fetched)
    this.noteFetched(fetched)
    return fetched
  }

  /** The writer takes its memory back: the peer fetches nothing more of it, where that can be prevented. */
  revokeOffer(): void {
    this.offer?.revoke()
  }

  /** The writer's memory is its own again, and the peer's posted receive is void. */
  dropOffers(): void {
    this.dropOffer()
    this.dropTarget()
  }

  /** The peer has posted a receive; false if its key does not give what it says. One that comes too late is void. */
  openTarget(sequence: number, length: number, key: Uint8Array): boolean {
    const { stream } = this
    const memory = stream.channel.memory.import(key, length, 'remoteWrite')
    if (memory === undefined) return false
    if (sequence !== stream.sendSequence || this.written > 0) return true
    this.target = memory
    this.targetSequence = sequence
    this.targetLength = length
    return true
  }

  /** Whether the next chunk should go to the peer's posted receive; if a part of it is there already, it must. */
  wantsTarget(length: number): boolean {
    if (this.target === undefined) return false
    if (this.targetSequence !== this.stream.sendSequence) {
      this.dropTarget()
      return false
    }
    return this.written > 0 || length >= Math.max(THRESHOLD_MIN, this.stream.channel.offerMin)
  }

  /** False if the peer cannot be told yet: again later. If its memory cannot be written, the posted receive is void. */
  writeTarget(pending: PendingChunks): boolean {
    const { stream } = this
    // What is there already stays as long as it was, whatever the chunks are by now.
    const chunk = pending.next(this.written || this.targetLength)
    if (this.written === 0 && !stream.channel.memory.write(chunk, this.target as RemoteMemory)) {
      this.dropTarget()
      return true
    }
    this.written = chunk.length
    if (!stream.sendPlace(WR_COMPL, stream.sendSequence, this.written, NO_KEY)) {
      stream.scheduleSend()
      return false
    }
    pending.skip(this.written)
    this.noteFetched(this.written)
    this.dropTarget()
    return true
  }

  /** Data was sent: a posted receive stood for the place before it, and would stand for one 4 GiB on, too. */
  dropTarget(): void {
    this.target = undefined
    this.written = 0
  }

  // The reader's half.

  /** The peer offers bytes that are not fetched yet. Nothing else of this stream can come meanwhile. */
  get isFetching(): boolean {
    return this.source !== undefined
  }

  /** False if the key does not give `length` bytes. */
  openSource(key: Uint8Array, length: number): boolean {
    this.isPostingWorthwhile = true
    this.source = this.stream.channel.memory.import(key, length, 'remoteRead')
    this.sourceLeft = length
    this.sourceAt = 0
    this.sourceTurns = 0
    return this.source !== undefined
  }

  dropSource(): void {
    this.source = undefined
  }

  /**
   * Fetches one piece, straight to where the program wants it: a turn each, so that other sockets get theirs. If the program
   * does not read, or the memory cannot be read, the peer is told to send the rest.
   */
  fetch(sink: StreamSink): void {
    const { stream } = this
    if (sink.isReading) {
      const lengthMax = Math.min(this.sourceLeft, FETCH_MAX)
      const posted = sink.posted?.(lengthMax)
      const bytes = posted ?? stream.channel.host.allocate(lengthMax)
      const isRead = stream.channel.memory.read(
        bytes,
        this.source as RemoteMemory,
        this.sourceAt,
        posted === undefined,
      )
      if (!isRead) return this.endFetch()
      this.sourceAt += bytes.length
      this.sourceLeft -= bytes.length
      stream.receiveSequence = (stream.receiveSequence + bytes.length) | 0
      stream.counts.fetched(bytes.length)
      if (this.sourceLeft === 0) this.endFetch()
      else stream.scheduleDelivery()
      if (posted === undefined) return stream.handOver(bytes as Buffer, false)
      sink.handlePosted?.(bytes.length)
      stream.consume(bytes.length)
    } else if (sink.posted !== undefined && this.sourceTurns++ < POST_TURNS) {
      stream.scheduleDelivery()
    } else {
      this.endFetch()
    }
  }

  /** Sends what was refused before; false if it is refused again. */
  resume(): boolean {
    return !this.isCompletionOwed || this.sendCompletion()
  }

  /** `bytes` must stay as they are until the receive is over. Everything before must have been taken. */
  post(bytes: Uint8Array): void {
    const { stream } = this
    const { memory, offerMin } = stream.channel
    if (!this.isPostingWorthwhile || this.posted !== undefined) return
    if (!memory.mayPost || bytes.length < Math.max(THRESHOLD_MIN, offerMin)) return
    const posted = memory.register(bytes, 'remoteWrite')
    if (posted === undefined) return
    const length = Math.min(bytes.length, OFFER_MAX)
    // Refused: the bytes come as DATA.
    if (!stream.sendPlace(SINK_AVAIL, stream.receiveSequence, length, posted.key)) return posted.deregister()
    this.posted = posted
    this.postedLength = length
  }

  /** The peer has written `length` bytes to the posted receive; false if it cannot have. */
  completePosted(length: number): boolean {
    if (this.posted === undefined || length <= 0 || length > this.postedLength) return false
    this.dropPosted()
    return true
  }

  /** Something else has come instead. */
  voidPosted(): void {
    if (this.posted === undefined) return
    this.isPostingWorthwhile = false
    this.dropPosted()
  }

  /** The program takes its buffer back: the peer writes nothing more there, where that can be prevented. */
  revokePosted(): void {
    this.posted?.revoke()
  }

  dropPosted(): void {
    this.posted?.deregister()
    this.posted = undefined
  }

  private noteFetched(length: number): void {
    const { stream } = this
    stream.sendSequence = (stream.sendSequence + length) | 0
    stream.counts.fetchedByPeer(length)
  }

  private copyAtLeast(length: number): void {
    this.copyLeft = Math.max(length, this.copyNext)
    this.copyNext = Math.min(2 * this.copyNext, COPY_RUN_MAX)
  }

  private dropOffer(): void {
    this.offer?.deregister()
    this.offer = undefined
  }

  private endFetch(): void {
    this.source = undefined
    if (!this.sendCompletion()) this.stream.scheduleSend()
  }

  private sendCompletion(): boolean {
    const { stream } = this
    const isOut = stream.sendPlace(RD_COMPL, stream.receiveSequence, 0, NO_KEY)
    this.isCompletionOwed = !isOut
    return isOut
  }
}
