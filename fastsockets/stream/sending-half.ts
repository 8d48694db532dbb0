/**
 * The sending half of a stream: writes until they are sent or fetched by the peer, then the FIN; and what both halves
 * share. `Stream` has the receiving half.
 *
 * A write is sent before `write` returns, as far as the send queue and the peer's window go. The rest is copied, so
 * that the program may reuse its memory. Of the rest, what fits into the peer's window counts as written, as in a
 * kernel's send queue: it is sent even if the program closes. Bytes beyond the window wait, and so does the program's
 * callback.
 *
 * Sequence numbers count bytes, are int32 and wrap: only their differences have a meaning.
 */
import { copyBytes } from '../../nic/index.ts'
import { BYTES_OUT, PEER_TAKEN } from '../status/status-layout.ts'
import type { StreamCounts } from '../status/stream-counts.ts'
import { PendingChunks } from './pending-chunks.ts'
import type { MessageOut, StreamHost, UnreadCount } from './stream-host.ts'
import {
  BYTES_WORDS,
  COUNT_SIZE,
  DATA,
  EARLY_WINDOW,
  FLAG_BACK,
  FLAG_FIN,
  FLAG_MOVED,
  FRAMING_MAX,
  RD_COMPL,
  RD_COMPL_WORDS,
  THRESHOLD_MIN,
  WINDOW,
} from './stream-layout.ts'
import type { StreamErrorCode, StreamSink } from './stream-sink.ts'
import type { PeerMemory, Zcopy } from './zcopy/zcopy.ts'

/**
 * Linux passes so many bytes to the loopback device at once (GSO_MAX_SIZE). A longer write meets the peer's reset, and
 * fails.
 */
const LOST_MAX = 512 * 1024
/** Of `trySendWithHead`. */
const HEAD_SIZE = 4

/** The channel, as the sending half uses it. */
export interface SendingChannel {
  readonly isOpen: boolean
  readonly host: StreamHost
  readonly unread: UnreadCount
  /** Payload of one DATA message. */
  readonly segmentMax: number
  /** Writes up to this length fit into one message, and are never offered. */
  readonly smallMax: number
  /** Chunks from this length on are offered instead of sent. */
  readonly offerMin: number
  readonly memory: PeerMemory
  /** The peer is about to copy so many bytes from this side's memory. */
  noteOffer(length: number): void
  /** While any stream counts, the channel keeps the process alive. */
  ref(): void
  unref(): void
}

/** `presumed`: the program was notified of the connection, and the peer has not answered yet. */
export type StreamState = 'connecting' | 'presumed' | 'open' | 'closing' | 'closed'

interface Failure {
  readonly code: StreamErrorCode
  readonly syscall: 'read' | 'write'
  readonly cause: Error | undefined
}

export abstract class SendingHalf {
  readonly channel: SendingChannel
  readonly id: number
  readonly counts: StreamCounts
  sink: StreamSink | undefined
  /** The path of a unix socket. */
  unixPath: string | undefined
  state: StreamState = 'connecting'

  // The handshake.
  /** The CONNECT was sent, or has arrived. */
  isAsked = false
  /** The program was notified before the peer answered. */
  isPresumed = false
  /** The server has accepted. */
  isAnswered = false
  /** The peer has closed with an offer open, and may have fetched a part: nothing can be sent in sequence any more. */
  protected isCutOff = false
  /** Bytes that a client may have under way before the answer. */
  earlyWindow = EARLY_WINDOW

  // Sending.
  protected readonly out: MessageOut
  /**
   * Sequence numbers: of the next byte to send; of the first that may not be sent; of the first that the peer's program
   * has not consumed.
   */
  sendSequence = 0
  /** More than the count of a promotion. */
  hasBeenConsumed = false
  protected sendLimit = 0
  protected peerConsumed = 0
  pending: PendingChunks | undefined
  /** The last write is not completed: its callback waits. */
  isWaiting = false
  writeCount = 0
  /** Everything before this sequence was reported as written. */
  private reportedUpTo = 0
  protected finState: 'open' | 'wanted' | 'sent' = 'open'
  private finFlags = FLAG_FIN
  /** FLAG_MOVED or FLAG_BACK, to be sent alone: also behind the end of this direction. */
  private flagsOwed = 0
  /** `sendSequence` when the sink was last notified of its waiting write. */
  private notifiedAt = 0
  /** Of the pending write: it begins with a short head; the flags of its messages. */
  private isFramed = false
  private flags = 0
  /** Pending bytes that the budget counts; any keep the process alive. */
  private kept = 0
  /** Error of writes after every failure was reported. */
  protected laterError: StreamErrorCode = 'EPIPE'
  /** TCP reports only by a write that the peer has closed: the first write succeeds, and is lost. */
  protected losesNextWrite = false

  // Of the receiving half.
  /** The first byte that the program has not consumed; each message reports it. */
  protected consumed = 0
  /** Consumed bytes that are not reported, so that the peer sends less. */
  protected withheld = 0
  protected reportedLast = 0
  /** Ends the stream once all data is delivered. */
  protected failure: Failure | undefined
  peerClosed = false
  protected zcopy: Zcopy | undefined

  constructor(channel: SendingChannel, out: MessageOut, id: number, counts: StreamCounts) {
    this.channel = channel
    this.out = out
    this.id = id
    this.counts = counts
  }

  /** Bytes of writes that are not sent. */
  get unsentLength(): number {
    return this.pending === undefined ? 0 : this.pending.length
  }

  /** How many bytes the peer's window accepts now. */
  get windowLeft(): number {
    return (this.sendLimit - this.sendSequence) | 0
  }

  /** True if a write can only fail: after shutdown(2), or when the peer is gone. */
  get refusesWrites(): boolean {
    return (
      this.finState !== 'open' ||
      this.peerClosed ||
      (this.state !== 'open' && this.state !== 'presumed') ||
      !this.channel.isOpen
    )
  }

  /** The error of such a write: as with TCP, an unreported one comes first. */
  get writeError(): StreamErrorCode {
    return this.failure?.code ?? this.laterError
  }

  /** The program has ended this direction. */
  get isFinished(): boolean {
    return this.finState !== 'open'
  }

  /**
   * The fate of a refused write of `length` bytes. TCP loses the first write after the peer has closed; of a longer one
   * it sends the first part, so that libuv fails at the second. On a unix path the kernel refuses the write.
   */
  fateOfWrite(length: number): 'lost' | 'fails' | 'fails late' {
    const isFirst = this.losesNextWrite && this.unixPath === undefined
    this.losesNextWrite = false
    if (!isFirst || this.isFinished || this.state !== 'open') return 'fails'
    return length <= LOST_MAX ? 'lost' : 'fails late'
  }

  /** The usual write: all of `chunk` in one message, at once; false if that cannot be: then `write` it. */
  sendWhole(chunk: Uint8Array, flags = 0): boolean {
    const { length } = chunk
    const { pending } = this
    if (length === 0 || length > this.channel.smallMax || length > ((this.sendLimit - this.sendSequence) | 0))
      return false
    if (!(this.isAnswered || this.maySend()) || (pending !== undefined && pending.length > 0)) return false
    const { out } = this
    const reported = (this.consumed - this.withheld) | 0
    const at = out.reserveOneWay(DATA, BYTES_WORDS, -this.id, this.sendSequence, reported, flags, length)
    if (at < 0) return false
    this.writeCount++
    copyBytes(chunk, 0, out.sendBytes, at, length)
    this.commitData(length)
    return true
  }

  /**
   * True if the write is completed; otherwise the sink is notified later. The caller may reuse the chunks on return,
   * except those of at least `lentMin` bytes, which it lends until the write is completed. `isFramed`: the first chunk
   * is a short head of the others. `flags`: of the messages.
   */
  write(
    chunks: readonly Uint8Array[],
    isFramed = false,
    flags = 0,
    lentMin = Number.POSITIVE_INFINITY,
  ): boolean {
    if (chunks.length === 1 && this.sendWhole(chunks[0] as Uint8Array, flags)) return true
    this.writeCount++
    const { offerMin } = this.channel
    const mayOffer = offerMin < Number.POSITIVE_INFINITY
    this.pending ??= new PendingChunks()
    const { pending } = this
    if (pending.length > 0) {
      pending.add(chunks, lentMin, mayOffer)
    } else {
      pending.set(chunks)
      this.reportedUpTo = this.sendSequence
      this.isFramed = isFramed
      this.flags = flags
      // The peer fetches an offer after this returns: from a copy, unless the program lends its memory.
      if (pending.length >= offerMin) pending.keep(lentMin, true)
      if (this.sendPending(pending)) return true
      pending.keep(lentMin, mayOffer)
    }
    this.isWaiting = !this.fitsRoom()
    if (!this.isWaiting) this.reportedUpTo = (this.sendSequence + pending.length) | 0
    this.account()
    return !this.isWaiting
  }

  /** Sends what finds window and room now, and keeps nothing; returns how many bytes: none before pending ones. */
  trySend(bytes: Uint8Array): number {
    if (this.unsentLength > 0) return 0
    let sent = 0
    while (sent < bytes.length) {
      const length = Math.min(
        bytes.length - sent,
        this.channel.segmentMax,
        (this.sendLimit - this.sendSequence) | 0,
      )
      const at = length > 0 ? this.reserveData(length, 0) : -1
      if (at < 0) break
      copyBytes(bytes, sent, this.out.sendBytes, at, length)
      this.commitData(length)
      sent += length
    }
    return sent
  }

  /** The write that waits is sent even if the program closes: the stream has a copy of it. */
  promisePending(): void {
    this.reportedUpTo = (this.sendSequence + this.unsentLength) | 0
  }

  /** Sends `head`, as `HEAD_SIZE` bytes little-endian, and all of `bytes` in one message; false if that cannot be now. */
  trySendWithHead(head: number, bytes: Uint8Array): boolean {
    return bytes.length < this.channel.offerMin && this.trySendMessage(head, bytes)
  }

  /** The same, also for bytes that are long enough to be offered. */
  trySendMessage(head: number, bytes: Uint8Array): boolean {
    const { channel, out } = this
    const length = HEAD_SIZE + bytes.length
    if (length > channel.segmentMax + FRAMING_MAX || length > out.mediumMax || !this.isAnswered) return false
    if (this.unsentLength > 0 || length > ((this.sendLimit - this.sendSequence) | 0)) return false
    const at = this.reserveData(length, 0)
    if (at < 0) return false
    this.writeCount++
    const { sendBytes } = out
    for (let i = 0; i < HEAD_SIZE; i++) sendBytes[at + i] = head >>> (8 * i)
    copyBytes(bytes, 0, sendBytes, at + HEAD_SIZE, bytes.length)
    this.commitData(length)
    return true
  }

  /** Sends FIN after the pending bytes. True if it is sent already. `goesBack`: this direction goes on by TCP. */
  shutdown(goesBack = false): boolean {
    if (this.refusesWrites) return true
    this.finState = 'wanted'
    if (goesBack) this.finFlags |= FLAG_BACK
    else this.counts.endedHere()
    return this.sendFin()
  }

  /** The peer's program has consumed bytes. */
  handleConsumed(consumed: number): string | undefined {
    const progress = (consumed - this.peerConsumed) | 0
    if (progress === 0) return undefined
    const sent = (this.sendSequence + (this.zcopy?.offered ?? 0) - this.peerConsumed) | 0
    if (progress < 0 || progress > sent)
      return `${consumed >>> 0} bytes consumed of ${this.sendSequence >>> 0} sent`
    this.peerConsumed = consumed
    this.hasBeenConsumed ||= consumed > COUNT_SIZE || consumed < 0
    this.sendLimit = (this.sendLimit + progress) | 0
    const { words } = this.counts
    words[PEER_TAKEN] = (words[PEER_TAKEN] as number) + progress
    if (this.pending !== undefined && this.pending.length > 0) this.scheduleSend()
    return undefined
  }

  /** Tells the peer that its direction has left TCP. */
  noteMoved(): void {
    this.sendAlone(FLAG_MOVED)
  }

  /** Asks the peer to go on by TCP. This direction has ended, or is about to. */
  askBack(): void {
    this.sendAlone(FLAG_BACK)
  }

  private sendAlone(flag: number): void {
    this.flagsOwed |= flag
    if (!this.sendOwed()) this.scheduleSend()
  }

  abstract scheduleSend(): void
  abstract scheduleDelivery(): void

  /** For ZCopy: sends `handler` with `last` as its last word; false if there is no room. */
  sendPlace(handler: number, sequence: number, last: number, key: Uint8Array): boolean {
    const { out } = this
    const reported = (this.consumed - this.withheld) | 0
    const wordCount = handler === RD_COMPL ? RD_COMPL_WORDS : BYTES_WORDS
    const at = out.reserveOneWay(handler, wordCount, -this.id, sequence, reported, last, key.length)
    if (at < 0) return false
    copyBytes(key, 0, out.sendBytes, at, key.length)
    out.commitOneWay(key.length)
    this.reportedLast = reported
    return true
  }

  protected abstract zcopyPart(): Zcopy

  protected fail(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
    this.failure ??= { code, syscall, cause }
  }

  /** True if the peer may be sent bytes and ends. */
  protected maySend(): boolean {
    return this.isAnswered || (this.isPresumed && this.isAsked)
  }

  /** Sends pending bytes as far as possible, many small chunks in one message; true if none is left. */
  private sendPending(pending: PendingChunks): boolean {
    const { out } = this
    if (!this.maySend()) return pending.length === 0
    while (pending.length > 0) {
      if (this.zcopy?.isOffering === true) return false
      if (pending.isLent && !pending.isWhole()) return this.failLent(pending)
      const { nextLength } = pending
      if (this.zcopy?.wantsTarget(nextLength) === true) {
        if (!this.zcopy.writeTarget(pending)) return false
        continue
      }
      if (this.wantsOffer(nextLength) && this.zcopyPart().tryOffer(pending)) return false
      const length = Math.min(
        pending.length,
        this.messageMax(pending),
        (this.sendLimit - this.sendSequence) | 0,
      )
      if (length <= 0) return false
      const at = this.reserveData(length, this.flags)
      if (at < 0) {
        this.scheduleSend()
        return false
      }
      pending.copyTo(out.sendBytes, at, length)
      this.commitData(length)
      if (this.zcopy !== undefined) this.zcopy.noteCopied(length)
    }
    pending.clear()
    return true
  }

  /** True if a chunk of `length` bytes should be offered instead of sent. */
  private wantsOffer(length: number): boolean {
    if (length < THRESHOLD_MIN || length < this.channel.offerMin || !this.isAnswered) return false
    return this.zcopy === undefined || this.zcopy.wantsOffer(length)
  }

  /**
   * Largest payload of the next message. What stands before a chunk that will be offered goes alone: the peer fetches that chunk
   * whole. A message with a head may be a little longer if all of it fits.
   */
  private messageMax(pending: PendingChunks): number {
    const { segmentMax } = this.channel
    if (this.wantsOffer(pending.secondLength)) return Math.min(pending.nextLength, segmentMax)
    const whole = segmentMax + FRAMING_MAX
    return this.isFramed && pending.length <= whole && whole <= this.out.mediumMax ? whole : segmentMax
  }

  private reserveData(length: number, flags: number): number {
    return this.out.reserveOneWay(
      DATA,
      BYTES_WORDS,
      -this.id,
      this.sendSequence,
      (this.consumed - this.withheld) | 0,
      flags,
      length,
    )
  }

  private commitData(length: number): void {
    this.out.commitOneWay(length)
    this.reportedLast = (this.consumed - this.withheld) | 0
    this.sendSequence = (this.sendSequence + length) | 0
    if (this.zcopy !== undefined) this.zcopy.dropTarget()
    const { words } = this.counts
    words[BYTES_OUT] = (words[BYTES_OUT] as number) + length
  }

  /** The program has transferred lent memory: none of it is sent any more. */
  private failLent(pending: PendingChunks): false {
    pending.clear()
    this.fail('EFAULT', 'write', undefined)
    this.scheduleDelivery()
    return false
  }

  private sendFin(): boolean {
    if (this.unsentLength > 0 || !this.maySend()) return false
    if (this.reserveData(0, this.finFlags) < 0) {
      this.scheduleSend()
      return false
    }
    this.commitData(0)
    this.finState = 'sent'
    return true
  }

  /** False if there is no room. Nothing may follow an offer: flags wait for its RD_COMPL, or are void once the peer has closed. */
  private sendOwed(): boolean {
    if (this.flagsOwed === 0 || this.state !== 'open' || this.isCutOff || this.zcopy?.isOffering === true)
      return true
    if (!this.maySend() || this.reserveData(0, this.flagsOwed) < 0) return false
    this.commitData(0)
    this.flagsOwed = 0
    return true
  }

  protected resumeSending(): boolean {
    if (this.flagsOwed !== 0 && !this.sendOwed()) return false
    const { pending } = this
    if ((this.unsentLength > 0 || this.isWaiting) && !this.isCutOff) {
      const isOut = pending === undefined || this.sendPending(pending)
      this.account()
      this.notifyProgress()
      // With its window shut this stream can still report consumed bytes; the peer may wait for just that.
      const hasWindow = ((this.sendLimit - this.sendSequence) | 0) > 0
      if (!isOut && this.zcopy?.isOffering !== true && hasWindow) return false
    }
    if (this.finState === 'wanted' && this.unsentLength === 0 && !this.isWaiting) {
      if (!this.sendFin()) return false
      this.sink?.handleShutdown()
    }
    return true
  }

  private notifyProgress(): void {
    const { sink } = this
    const isNews = this.sendSequence !== this.notifiedAt
    this.notifiedAt = this.sendSequence
    if (!this.isWaiting) return
    if (this.fitsRoom()) {
      this.isWaiting = false
      this.reportedUpTo = (this.sendSequence + this.unsentLength) | 0
      sink?.handleWritten()
    } else if (isNews) {
      sink?.handleSent()
    }
  }

  /** Counts pending bytes in the budget. Bytes that are sent at once are never counted. */
  private account(): void {
    const length = this.unsentLength
    const { channel } = this
    if (length === this.kept) return
    channel.unread.noteKept(length - this.kept)
    if (this.kept === 0) channel.ref()
    this.kept = length
    if (length === 0) channel.unref()
    this.counts.waiting(length)
  }

  /**
   * How many of the next bytes count as written before they are sent. Before the ACCEPT only the early window counts:
   * the rest is in this process, and would be lost with it.
   */
  private room(): number {
    if (this.pending?.isLent === true || this.channel.unread.isOverBudget()) return 0
    return (this.sendLimit - this.sendSequence) | 0
  }

  /** One-sided transfers may go beyond the window: without unsent bytes the write is complete all the same. */
  private fitsRoom(): boolean {
    return this.unsentLength === 0 || this.unsentLength <= this.room()
  }

  /** Bytes that are still sent after the program has closed. The ACCEPT opens the window; copies wait for it here. */
  private lingerMax(): number {
    if (this.isAnswered || this.pending?.isLent === true) return this.room()
    return this.channel.unread.isOverBudget() ? 0 : (WINDOW - this.sendSequence) | 0
  }

  /**
   * True if TCP would report a reset by the waiting write: by one that does not wait for the peer's program to read,
   * and, if the program here does not read, by any.
   */
  protected reportsReset(): boolean {
    const isReading = this.sink?.isReading || this.sink?.isFeeding || false
    return this.isWaiting && (!isReading || ((this.sendLimit - this.sendSequence) | 0) > 0)
  }

  /** True if more was written than the peer had `received` when it closed: to TCP, unread bytes. */
  protected isBeyond(received: number): boolean {
    return this.unsentLength > 0 || ((this.sendSequence - received) | 0) > 0
  }

  /**
   * The program has closed. Unless that is a reset, completed writes are still sent, as from a kernel's send queue. A
   * waiting write is cancelled, as by libuv, except for what the peer is fetching.
   */
  protected cutSending(isReset: boolean): void {
    const { pending, zcopy } = this
    if (pending !== undefined) {
      // The window may have shrunk since: what was reported as written is sent.
      const reported = (this.reportedUpTo - this.sendSequence) | 0
      const sendable = isReset ? 0 : Math.min(pending.length, Math.max(reported, this.lingerMax()))
      const kept = zcopy !== undefined && !isReset ? Math.max(sendable, zcopy.offered) : sendable
      if (kept === 0) this.clearSending()
      else if (kept < pending.length || pending.isLent) pending.cut(kept)
    } else this.clearSending()
    this.isWaiting = false
    this.account()
    zcopy?.revokeOffer()
  }

  /**
   * Sends nothing more, not even a FIN, as the CLOSE ends this direction too. An offer stays registered until the peer
   * has completed it.
   */
  protected clearSending(): void {
    if (this.finState === 'wanted') this.finState = 'sent'
    this.pending?.clear()
    this.isWaiting = false
    this.account()
  }

  /** The peer is gone: a waiting shutdown is over; false if none waits. */
  protected giveUpFin(): boolean {
    if (this.finState !== 'wanted' || this.isWaiting) return false
    this.finState = 'sent'
    return true
  }
}
