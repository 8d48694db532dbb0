/**
 * ZCopy of one stream: large chunks are offered instead of sent, and the receiver fetches them from the writer's
 * memory, in one copy (SDP for Windows 2006, section 4). A stream creates it on first use.
 *
 *   writer                                          reader
 *   offer, SRC_AVAIL   one chunk at a time      ->  fetch, RD_COMPL: how far it came; the rest comes as DATA
 *   write, WR_COMPL    into a posted receive    <-  post, SINK_AVAIL
 *
 * A posted receive is for the bytes at `sequence`: any other message that sends those makes it void on both sides,
 * without an answer.
 */
import type { Registration, RemoteMemory } from '../../../nic/index.ts'
import type { PendingChunks } from '../pending-chunks.ts'
import {
  FETCH_MAX,
  FETCH_POSTED_MAX,
  OFFER_MAX,
  RD_COMPL,
  SINK_AVAIL,
  SRC_AVAIL,
  THRESHOLD_MIN,
  WR_COMPL,
} from '../stream-layout.ts'
import type { StreamSink } from '../stream-sink.ts'

/** Bytes that are copied after an offer that was not fetched: doubled each time, up to the maximum. */
const COPY_RUN_MIN = 1 << 20
const COPY_RUN_MAX = 1 << 26
/** Turns in which a program that inspects each receive may post the next one. */
const POST_TURNS = 3
const NO_KEY = new Uint8Array(0)

/** One-sided access to the peer's memory: each operation is over when it returns. */
export interface PeerMemory {
  /** False in threads whose memory may be reused while the peer still writes to it. */
  readonly mayPost: boolean
  /** Undefined if the key is invalid, or does not give `length` bytes for that use. */
  import(key: Uint8Array, length: number, use: 'remoteRead' | 'remoteWrite'): RemoteMemory | undefined
  /** Undefined if the device can pin no more memory: then bytes are copied. */
  register(bytes: Uint8Array, use: 'remoteRead' | 'remoteWrite'): Registration | undefined
  /** Fills `target`; false if the memory cannot be read. `isOnce`: `target` was made for this. */
  read(target: Uint8Array, from: RemoteMemory, at: number, isOnce: boolean): boolean
  /** Writes `source` to the beginning of `into`; false if the memory cannot be written. */
  write(source: Uint8Array, into: RemoteMemory): boolean
}

/** The stream, as ZCopy uses it. */
export interface ZcopyStream {
  readonly channel: {
    readonly memory: PeerMemory
    readonly offerMin: number
    noteOffer(length: number): void
    readonly host: { allocate(length: number): Buffer }
  }
  /** Counts bytes that were received, or sent, by one-sided access. */
  readonly counts: { fetched(length: number): void; fetchedByPeer(length: number): void }
  readonly sink: StreamSink | undefined
  readonly pending: PendingChunks | undefined
  /** What the peer may have under way or unread at once. */
  readonly windowGranted: number
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

  /** The writer's chunk on offer, whose memory must not change meanwhile, and its length at the offer. */
  private offer: Registration | undefined
  private offerLength = 0
  /** Bytes to send as data before the next offer, and how many if that one is not fetched. */
  private copyLeft = 0
  private copyNext = COPY_RUN_MIN

  /** Of the writer: the peer's posted receive, and bytes that are written there and not reported. */
  private target: RemoteMemory | undefined
  private targetSequence = 0
  private targetLength = 0
  private written = 0

  /** Of the reader: the peer's chunk on offer, its bytes that are not fetched, and their offset. */
  private source: RemoteMemory | undefined
  private sourceLeft = 0
  private sourceAt = 0
  private sourceTurns = 0
  private isCompletionOwed = false

  /** Of the reader: the buffer of a posted receive, which the peer may fill. */
  private posted: Registration | undefined
  private postedLength = 0
  /** A large chunk of the peer has come since the last receive. Otherwise posting receives is not worth it. */
  private isPostingWorthwhile = false

  constructor(stream: ZcopyStream) {
    this.stream = stream
  }

  // The writer's half.

  /** A chunk is on offer: nothing else of this stream may be sent meanwhile. */
  get isOffering(): boolean {
    return this.offer !== undefined
  }

  /** Bytes on offer: the peer may have fetched them before it reports that. */
  get offered(): number {
    return this.offer === undefined ? 0 : this.offerLength
  }

  /** True if the next chunk, of `length` bytes, should be offered. */
  wantsOffer(length: number): boolean {
    return this.copyLeft <= 0 && length >= this.stream.channel.offerMin
  }

  noteCopied(length: number): void {
    this.copyLeft -= length
  }

  /**
   * Offers the next chunk; without room for the message, again later. False if its memory cannot be offered: it is
   * copied.
   */
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
    stream.channel.noteOffer(length)
    return true
  }

  /** The peer has fetched up to `sequence`, and wants the rest as data; returns how many bytes, or -1 if impossible. */
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

  /** The writer reuses its memory: ends the peer's access, where that is possible. */
  revokeOffer(): void {
    this.offer?.revoke()
  }

  /** Deregisters the writer's memory; the peer's posted receive is void. */
  dropOffers(): void {
    this.dropOffer()
    this.dropTarget()
  }

  /** The peer has posted a receive; false if its key is invalid. One that comes too late is void. */
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

  /** True if the next chunk should go to the peer's posted receive; if a part of it is there already, it must. */
  wantsTarget(length: number): boolean {
    if (this.target === undefined) return false
    if (this.targetSequence !== this.stream.sendSequence) {
      this.dropTarget()
      return false
    }
    return this.written > 0 || length >= Math.max(THRESHOLD_MIN, this.stream.channel.offerMin)
  }

  /**
   * False if there is no room for the message: again later. If the memory cannot be written, the posted receive is
   * void.
   */
  writeTarget(pending: PendingChunks): boolean {
    const { stream } = this
    // The length of the first attempt, whatever the chunks are by now.
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

  /** Data was sent: the posted receive, for the bytes before, would match again after 4 GiB. */
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
   * Fetches one piece, directly to the program's buffer: one each turn, so that other sockets progress. If the program
   * does not read, or the memory cannot be read, the peer must send the rest.
   */
  fetch(sink: StreamSink): void {
    const { stream } = this
    if (sink.isReading) {
      // A program that stops reading in the middle leaves no more than the window unread.
      const lengthMax = Math.min(this.sourceLeft, stream.windowGranted)
      const posted = sink.posted?.(Math.min(lengthMax, FETCH_POSTED_MAX))
      const bytes = posted ?? stream.channel.host.allocate(Math.min(lengthMax, FETCH_MAX))
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

  /** Retries what was refused; false if it is refused again. */
  resume(): boolean {
    return !this.isCompletionOwed || this.sendCompletion()
  }

  /** `bytes` must stay in place until the receive is over. Everything before must be consumed. */
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

  /** The peer has written `length` bytes to the posted receive; false if that is impossible. */
  completePosted(length: number): boolean {
    if (this.posted === undefined || length <= 0 || length > this.postedLength) return false
    this.dropPosted()
    return true
  }

  /** Other data has come instead. */
  voidPosted(): void {
    if (this.posted === undefined) return
    this.isPostingWorthwhile = false
    this.dropPosted()
  }

  /** The program reuses its buffer: ends the peer's access, where that is possible. */
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
