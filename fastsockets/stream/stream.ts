/**
 * One byte stream each way between two sockets, as one state machine: sequence numbers, byte windows, half-close, reset, and
 * the handshake before them. It knows no driver, no clock and no Node. Calls come in
 *
 *   from the program    write, sendWhole, trySend, shutdown, startReading, readInto, close
 *   from the peer       handle…, one for each message of stream-layout.ts; most return a description of the violation
 *   from the turn       resume (there may be room or window again), deliver, deliverQueued
 *
 * and leave to the program (`StreamSink`), as messages (`MessageOut`), and to the channel (`StreamChannel`).
 *
 * Received bytes are delivered while the sink reads (receive posting); the receive buffer keeps the others.
 * The sending half is in sending-half.ts.
 */
import { ablation } from '../../nic/index.ts'
import { BYTES_IN, BYTES_TAKEN } from '../status/status-layout.ts'
import type { StreamCounts } from '../status/stream-counts.ts'
import { isShared } from './lent-memory.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import { type SendingChannel, SendingHalf } from './sending-half.ts'
import type { StreamAddresses } from './stream-addresses.ts'
import type { MessageOut } from './stream-host.ts'
import {
  CLOSE,
  CLOSE_DONE,
  CLOSE_EARLY,
  CLOSE_RESET,
  CLOSE_WORDS,
  CONSUMED,
  CONSUMED_DUE,
  CONSUMED_WORDS,
  COUNT_SIZE,
  FLAG_BACK,
  FLAG_FIN,
  FLAG_MOVED,
  FLAG_PUSH,
  mayFollowEnd,
  SHRUNK_WINDOW,
} from './stream-layout.ts'
import type { StreamErrorCode } from './stream-sink.ts'
import { Zcopy, type ZcopyStream } from './zcopy/zcopy.ts'

const POSTS = ablation('no-posting') === undefined
const REPORTED_FROM = ablation('no-delayed-acks') === undefined ? CONSUMED_DUE : 1

/** The channel, as a stream uses it. */
export interface StreamChannel extends SendingChannel {
  /** Both ends are of one thread: the order of its events is known. */
  readonly isLoopback: boolean
  readonly isRaw: boolean
  readonly deliveries: {
    /** Counts the turns in which data was delivered. */
    readonly turn: number
    /** The next turn calls `deliver`. */
    schedule(stream: Stream): void
    /** This turn calls `deliverQueued` with a copy of the bytes. */
    queue(stream: Stream, bytes: Uint8Array, offset: number, length: number): void
    /** Later bytes become a piece of their own. */
    endRun(stream: Stream): void
  }
  /** A later turn calls `resume`, when there may be room. */
  scheduleSend(stream: Stream): void
  forget(stream: Stream): void
  /** Shows an open stream with the peer's `window`. */
  show(stream: Stream, window: number): void
  hide(stream: Stream): void
}

type ReceiveState = 'open' | 'finReceived' | 'ended'

export class Stream extends SendingHalf implements ZcopyStream {
  declare readonly channel: StreamChannel
  readonly role: 'client' | 'server'

  // Set by the channel.
  addresses: StreamAddresses | undefined
  /** A TCP connection of the same two sockets has moved here: its addresses are known. */
  isPromotion = false
  /** It carries the datagrams of two UDP sockets, in one direction. */
  isOfDatagrams = false
  /** The peer's direction has ended here, and goes on by TCP. */
  goesBack = false
  /** The peer reads our direction here, and TCP no more. */
  peerHasMoved = false
  /** The peer, whose direction has ended, asks that ours goes on by TCP. */
  asksBack = false
  /** The client's port if the server accepts; 0 if unknown, `PORT_AWAITED` while a promise may come. */
  promisedPort = 0
  /** Called once, when this side has closed or the channel is gone. */
  onClosed: (() => void) | undefined
  /** Queued pieces that are not delivered yet. */
  queuedCount = 0
  /** Bits of the channel's queues in which the stream waits. */
  queues = 0
  /** The program is notified of the connection in this turn: data is delivered from the next turn on. */
  isFresh = false

  /** The `lookCount` at which the client's program was notified of the connection. */
  private connectedAt = Number.NaN

  // Receiving.
  /** Sequence of the next byte to receive. */
  receiveSequence = 0
  /** More than the count of a promotion was reported as consumed. */
  private hasReported = false
  /** The first window of the peer. */
  readonly window: number
  private receiveState: ReceiveState = 'open'
  private buffer: ReceiveBuffer | undefined
  /** The channel's turn in which data was last delivered. */
  private deliveredInTurn = -1

  // Closing.
  private closeHow = CLOSE_DONE
  private closeReceived = 0
  private hasCloseBegun = false
  /** A CLOSE is due: the first, or a second one that says that it is a reset. */
  private isCloseOwed = false
  /** The first CLOSE was sent. */
  private isCloseOut = false

  constructor(
    channel: StreamChannel,
    out: MessageOut,
    id: number,
    role: 'client' | 'server',
    window: number,
    counts: StreamCounts,
  ) {
    super(channel, out, id, counts)
    this.role = role
    this.window = window
  }

  // State, for the channel and the sink.

  /** True if data, the end, or an error waits. */
  get isReadable(): boolean {
    return (
      this.waitingLength > 0 ||
      this.zcopy?.isFetching === true ||
      this.receiveState !== 'open' ||
      this.failure !== undefined
    )
  }

  /** Received bytes that the program has not consumed: the closed part of the window. */
  get waitingLength(): number {
    return this.buffer === undefined ? 0 : this.buffer.length
  }

  /** What the peer may have under way or unread at once: less than the window while the process is over its budget. */
  get windowGranted(): number {
    return this.window - this.withheld
  }

  // Calls of the program.

  /** Delivers waiting data later, outside the caller's stack. */
  startReading(): void {
    if (this.receiveState !== 'ended' && this.isReadable) this.scheduleDelivery()
  }

  /** Reads from the receive buffer into `target`; returns how many bytes. */
  readInto(target: Uint8Array): number {
    const count = this.buffer === undefined ? 0 : this.buffer.readInto(target)
    if (count > 0) this.consume(count)
    return count
  }

  /** Posts a receive into `bytes`, where the peer may write a large chunk. */
  postReceive(bytes: Uint8Array): void {
    this.zcopy?.post(bytes)
  }

  /** Like close(2): no more calls to the sink. Unread bytes make it a reset, as in TCP. */
  close(reset: boolean): void {
    if (this.state === 'closing' || this.state === 'closed') return
    const isEarly = !this.isAnswered || this.isJustConnected()
    const hasBytes =
      (this.waitingLength > 0 || this.queuedCount > 0) &&
      !this.isCountAlone(this.receiveSequence, this.hasReported)
    const isUnread = hasBytes || this.zcopy?.isFetching === true
    this.closeHow = reset || (isUnread && !isEarly) ? CLOSE_RESET : isEarly ? CLOSE_EARLY : CLOSE_DONE
    this.closeReceived = this.receiveSequence
    this.release()
    this.sink = undefined
    this.cutSending(this.closeHow === CLOSE_RESET || this.isBroken())
    this.zcopy?.revokePosted()
    this.buffer?.clear()
    this.zcopy?.dropSource()
    this.state = 'closing'
    if (!this.channel.isOpen) return this.finish()
    // Otherwise the answer to the CONNECT finds the stream closing.
    if (!this.maySend()) return
    this.sendClose()
    if (this.peerClosed && !this.isCloseOwed) this.finish()
  }

  // The handshake.

  /** The CONNECT was sent. */
  handleAsked(): void {
    this.isAsked = true
    if (this.isPresumed) this.scheduleSend()
  }

  /** Notifies the program of the connection before there is an answer. */
  presumeConnected(): void {
    this.state = 'presumed'
    this.isPresumed = true
    this.sendLimit = this.earlyWindow
  }

  /** The server has promised a window for this stream before it answers. */
  keepEarlyWindow(window: number): void {
    this.earlyWindow = window
    if (!this.isPresumed) return
    this.sendLimit = window
    if (this.unsentLength > 0) this.scheduleSend()
  }

  handleAccepted(window: number): void {
    this.isAnswered = true
    this.sendLimit = window
    this.sink?.handleAnswered?.()
    if (this.state === 'closing') {
      if (!this.hasCloseBegun) this.sendClose()
      return this.scheduleSend()
    }
    this.state = 'open'
    this.channel.show(this, window)
    if (this.isFinished) this.counts.endedHere()
    if (!this.isPresumed) this.deliverConnected()
    else if (this.unsentLength > 0) this.scheduleSend()
  }

  deliverConnected(): void {
    if (this.role === 'client') this.connectedAt = this.channel.host.lookCount()
    this.sink?.handleConnected()
  }

  handleRefused(refusal: number | undefined): void {
    const { sink } = this
    this.finish()
    sink?.handleRefused(refusal)
  }

  // Messages of the peer.

  handleData(
    sequence: number,
    consumed: number,
    flags: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): string | undefined {
    if (consumed !== this.peerConsumed) {
      const fault = this.handleConsumed(consumed)
      if (fault !== undefined) return fault
    }
    if (sequence !== this.receiveSequence)
      return `sequence ${sequence >>> 0} where ${this.receiveSequence >>> 0} was due`
    const end = (sequence + length) | 0
    if (((end - this.consumed + this.withheld) | 0) > this.window) return `${length} bytes beyond the window`
    if (this.receiveState !== 'open' && (length > 0 || !mayFollowEnd(flags))) return 'data after the end'
    const { zcopy } = this
    if (zcopy?.isFetching === true) return 'data behind an offer'
    this.receiveSequence = end
    if (this.state === 'closing') {
      if (length > 0 && !this.isCountAlone(end, this.hasReported)) this.answerClosed()
      return undefined
    }
    if (zcopy !== undefined) zcopy.voidPosted()
    const { words } = this.counts
    words[BYTES_IN] = (words[BYTES_IN] as number) + length
    if (length > 0) this.place(bytes, offset, length)
    if ((flags & FLAG_FIN) !== 0) {
      this.receiveState = 'finReceived'
      this.goesBack = (flags & FLAG_BACK) !== 0
      if (!this.goesBack) this.counts.endedByPeer()
      this.scheduleDelivery()
    } else if ((flags & FLAG_BACK) !== 0) {
      this.asksBack = true
      this.scheduleDelivery()
    }
    if ((flags & FLAG_MOVED) !== 0) {
      this.peerHasMoved = true
      this.scheduleDelivery()
    }
    if ((flags & FLAG_PUSH) !== 0) this.channel.deliveries.endRun(this)
    return undefined
  }

  handleClosed(how: number, received: number): void {
    // What was sent to a client that closed early came after its end.
    const isBeyond =
      this.isBeyond(received) &&
      (this.unsentLength > 0 || !this.isCountAlone(this.sendSequence, this.hasBeenConsumed))
    const isReset = how === CLOSE_RESET || (how !== CLOSE_EARLY && isBeyond)
    this.peerClosed = true
    this.isCutOff ||= this.zcopy?.isOffering === true
    this.zcopy?.dropSource()
    this.zcopy?.dropOffers()
    const hasUnsent = this.unsentLength > 0
    if (this.state === 'closing') {
      if (hasUnsent) this.answerClosed()
      // Even if the peer does not know of the reset: the number may be used again at once.
      if (this.isCloseOut) return this.finish()
    }
    if (this.state !== 'open') return
    this.counts.endedByPeer()
    const { writeCount } = this
    this.losesNextWrite = !isReset && (how !== CLOSE_EARLY || writeCount === 0)
    // A kernel would have sent the first write, and learned by it before the second that the client is closed.
    if (how === CLOSE_EARLY && writeCount > 1) this.fail('EPIPE', 'write', undefined)
    if (this.receiveState === 'open' && this.sink?.hasEnded !== true) {
      const isWritten = this.reportsReset()
      if (isReset) {
        this.fail('ECONNRESET', isWritten ? 'write' : 'read', undefined)
        // libuv reads the data, and finds the reset with it.
        if (this.queuedCount > 0 && this.sink?.isReading === true) this.endInPlaceOfReset()
      } else if (hasUnsent) this.fail('ECONNRESET', 'write', undefined)
      else this.receiveState = 'finReceived'
    } else if (hasUnsent) {
      // The end came before the reset: as in TCP, reading ends without an error. A unix socket reports an error before an end.
      const isError = isReset && this.receiveState === 'finReceived' && this.unixPath !== undefined
      this.fail(isError ? 'ECONNRESET' : 'EPIPE', isError ? 'read' : 'write', undefined)
    }
    this.scheduleDelivery()
  }

  /** Of a promotion: the count is all that has gone this way. No close makes a reset of it, as none of an idle TCP. */
  private isCountAlone(sequence: number, hasGoneOn: boolean): boolean {
    // After 2 ** 32 bytes the sequence is small again.
    return this.isPromotion && !hasGoneOn && sequence <= COUNT_SIZE && sequence >= 0
  }

  /** The channel is gone: the peer died, or broke the protocol (`cause`), which TCP would report as `code`. */
  handleChannelGone(cause: Error | undefined, code: StreamErrorCode): void {
    this.peerClosed = true
    this.zcopy?.dropSource()
    this.zcopy?.dropOffers()
    if (this.state === 'connecting' || this.state === 'presumed') return this.handleRefused(undefined)
    if (this.state === 'closing') return this.finish()
    this.counts.endedByPeer()
    this.losesNextWrite = cause === undefined
    if (cause !== undefined) this.fail(code, 'read', cause)
    else if (this.unsentLength > 0) this.fail('ECONNRESET', 'write', undefined)
    else if (this.receiveState === 'open') this.receiveState = 'finReceived'
    this.scheduleDelivery()
  }

  /** The peer offers its next bytes instead of sending them. */
  handleSourceAvailable(sequence: number, length: number, key: Uint8Array): string | undefined {
    if (sequence !== this.receiveSequence) return 'an offer out of sequence'
    if (this.receiveState !== 'open') return 'an offer after the end'
    const zcopy = this.zcopyPart()
    if (zcopy.isFetching) return 'an offer behind an offer'
    if (this.state === 'closing') return this.answerClosed()
    zcopy.voidPosted()
    if (!zcopy.openSource(key, length)) return `an offer of ${length} bytes with a key that does not fit`
    this.scheduleDelivery()
    return undefined
  }

  /** The peer has fetched up to `sequence`, and wants the rest as data. */
  handleReadCompleted(sequence: number): string | undefined {
    const fetched = this.zcopy?.completeOffer(sequence) ?? -1
    if (fetched < 0) return 'an RD_COMPL that fits no offer'
    // A closed socket may have dropped the offer.
    if (this.pending === undefined || this.pending.length === 0) return undefined
    this.pending.skip(fetched)
    this.scheduleSend()
    return undefined
  }

  /** The peer has posted a receive that a large chunk may go to. */
  handleSinkAvailable(sequence: number, length: number, key: Uint8Array): string | undefined {
    if (this.zcopyPart().openTarget(sequence, length, key)) return undefined
    return `a posted receive of ${length} bytes with a key that does not fit`
  }

  /** The peer has written its next bytes to the posted receive. */
  handleWriteCompleted(sequence: number, length: number): string | undefined {
    if (sequence !== this.receiveSequence || this.receiveState !== 'open') return 'a write out of sequence'
    if (this.zcopy?.completePosted(length) !== true)
      return `a write of ${length} bytes where no receive is posted`
    this.receiveSequence = (this.receiveSequence + length) | 0
    if (this.state === 'closing') return this.answerClosed()
    this.counts.fetched(length)
    this.sink?.handlePosted?.(length)
    this.consume(length)
    this.scheduleDelivery()
    return undefined
  }

  // Steps of a turn.

  /** Retries all refused sends, in order; false if one is refused again. */
  resume(): boolean {
    if (!this.resumeSending()) return false
    if (this.sink?.handleRoom?.() === false) return false
    if (this.zcopy?.resume() === false) return false
    if (!this.reportConsumed()) return false
    if (this.isCloseOwed && this.unsentLength === 0) {
      this.sendClose()
      if (this.isCloseOwed) return false
      if (this.peerClosed) this.finish()
    }
    return true
  }

  /**
   * Delivers waiting data while the sink reads. As with TCP, which needs another read for it, the end or an error comes
   * a turn after the last data: a program that has enough may close the socket first.
   */
  deliver(): void {
    while (this.waitingLength > 0 && this.sink?.isReading) {
      const buffer = this.buffer as ReceiveBuffer
      const isLent = this.sink.copies === true
      this.handOver(isLent ? buffer.peek() : buffer.read(), isLent)
      if (buffer.length === 0) this.endInPlaceOfReset()
      this.channel.host.drainTicks()
    }
    if (this.sink === undefined) return
    // With data left in the buffer the program does not read: the offer must not wait for it.
    if (this.zcopy?.isFetching === true) this.zcopy.fetch(this.sink)
    if (!this.channel.isOpen && this.giveUpFin()) this.sink?.handleShutdown()
    if (this.sink === undefined) return
    if (this.failure?.syscall === 'write') this.sink.handleWriteFailed?.(this.failure.code)
    this.sink.handleArrival?.()
    // It may have closed the stream.
    if (this.sink === undefined) return
    if (this.failure !== undefined && this.sink.isFeeding) return this.scheduleDelivery()
    const endsWrite = this.endsWrite()
    if (this.waitingLength > 0 && !endsWrite) return
    if (this.deliveredInTurn === this.channel.deliveries.turn) {
      if (this.failure !== undefined || this.receiveState === 'finReceived') this.scheduleDelivery()
      return
    }
    if (this.failure !== undefined) {
      const { code, cause, syscall: failed } = this.failure
      // libuv reads the end before it goes on with the write.
      if (code === 'EPIPE' && this.isWaiting && this.receiveState === 'finReceived' && this.sink.isReading)
        return this.deliverEnd()
      // The write that waited at the reset may be completed by now: then the read fails, as over TCP.
      const isOver = failed === 'write' && code === 'ECONNRESET' && !this.isWaiting
      const syscall = endsWrite ? 'write' : isOver ? 'read' : failed
      // A program that does not read is notified only by a waiting write. Raw sockets ask.
      if (!endsWrite && !this.sink.isReading && !this.isRaw()) return
      this.failure = undefined
      this.receiveState = 'ended'
      this.sink.handleError(code, syscall, cause)
    } else if (this.receiveState === 'finReceived' && this.sink.isReading) this.deliverEnd()
  }

  private deliverEnd(): void {
    this.receiveState = 'ended'
    this.sink?.handleEnd()
    if (this.failure !== undefined) this.scheduleDelivery()
  }

  /** Delivers a queued piece, which has memory of its own. */
  deliverQueued(bytes: Buffer): void {
    if (this.sink?.isReading === true && this.waitingLength === 0) this.handOver(bytes, false)
    else if (this.state === 'open') this.keep(bytes)
  }

  /** `isLent`: the bytes stay in the receive buffer until they are consumed. */
  handOver(bytes: Buffer, isLent: boolean): void {
    const { sink } = this
    if (sink === undefined) return
    this.deliveredInTurn = this.channel.deliveries.turn
    // The program may transfer the memory: nothing is read from it afterwards. A listener that throws has received all
    // bytes.
    const { length } = bytes
    let consumed = length
    try {
      consumed = sink.handleData(bytes)
    } finally {
      if (isLent) this.buffer?.skip(consumed)
      // A sink that has closed meanwhile drops the rest.
      else if (consumed < length && this.sink !== undefined) this.store(bytes, consumed, length - consumed)
      this.consume(consumed)
    }
  }

  consume(length: number): void {
    this.consumed = (this.consumed + length) | 0
    const { words } = this.counts
    words[BYTES_TAKEN] = (words[BYTES_TAKEN] as number) + length
    this.withheld = this.channel.unread.isOverBudget()
      ? Math.min(this.withheld + length, this.window - SHRUNK_WINDOW)
      : 0
    // At most half of the window stays unreported: the sender always has window.
    const due = Math.min(REPORTED_FROM, (this.window - this.withheld) >> 1)
    if (((this.consumed - this.withheld - this.reportedLast) | 0) < due) return
    if (!this.reportConsumed()) this.scheduleSend()
  }

  // For ZCopy.

  scheduleSend(): void {
    this.channel.scheduleSend(this)
  }

  scheduleDelivery(): void {
    this.channel.deliveries.schedule(this)
  }

  protected zcopyPart(): Zcopy {
    this.zcopy ??= new Zcopy(this)
    return this.zcopy
  }

  // Receiving.

  /** Delivers to a sink that reads; otherwise appends to the receive buffer. */
  private place(bytes: Uint8Array, offset: number, length: number): void {
    const { sink } = this
    let placed = 0
    if (POSTS && sink?.place !== undefined && this.waitingLength === 0) {
      // From the ring into the posted buffers of a raw socket.
      placed = sink.place(bytes, offset, length)
      if (placed > 0) this.consume(placed)
      if (placed === length) return
    }
    // Queue behind pieces that are not delivered yet.
    if (POSTS && (this.queuedCount > 0 || (sink?.isReading === true && this.waitingLength === 0))) {
      this.channel.deliveries.queue(this, bytes, offset + placed, length - placed)
      return
    }
    this.store(bytes, offset + placed, length - placed)
    if (!POSTS) this.scheduleDelivery()
    this.sink?.handleArrival?.()
  }

  private store(bytes: Uint8Array, offset: number, length: number): void {
    this.buffer ??= new ReceiveBuffer(this.channel.host, this.channel.unread)
    this.buffer.append(bytes, offset, length)
    this.counts.buffered(length)
  }

  /** Stores a queued piece. */
  private keep(bytes: Buffer): void {
    if (isShared(bytes)) return this.store(bytes, 0, bytes.length)
    this.buffer ??= new ReceiveBuffer(this.channel.host, this.channel.unread)
    this.buffer.appendOwn(bytes)
    this.counts.buffered(bytes.length)
  }

  /** Reports consumed bytes if that is due; false if there is no room for it. */
  private reportConsumed(): boolean {
    const reported = (this.consumed - this.withheld) | 0
    const due = Math.min(REPORTED_FROM, (this.window - this.withheld) >> 1)
    if (this.state !== 'open' || this.peerClosed || ((reported - this.reportedLast) | 0) < due) return true
    if (this.out.reserveOneWay(CONSUMED, CONSUMED_WORDS, -this.id, reported, 0, 0, 0) < 0) return false
    this.out.commitOneWay(0)
    this.reportedLast = reported
    this.hasReported ||= reported > COUNT_SIZE || reported < 0
    return true
  }

  private isRaw(): boolean {
    return this.sink?.place !== undefined
  }

  /** True if a waiting write reports the end though the program does not read; unread data is lost with the socket. */
  private endsWrite(): boolean {
    if (this.failure === undefined || this.isRaw() || this.sink?.isReading === true) return false
    return this.failure.code !== 'ECONNRESET' || this.isWaiting
  }

  /** Older libuv reports the end to late reads of data before a reset; only a waiting write reports more. */
  private endInPlaceOfReset(): void {
    const { failure } = this
    if (this.channel.host.reportsLateResets || this.isRaw() || failure?.code !== 'ECONNRESET') return
    if (failure.syscall !== 'read' || failure.cause !== undefined) return
    this.failure = this.unsentLength > 0 ? { ...failure, syscall: 'write' } : undefined
    if (this.failure !== undefined) return
    this.laterError = failure.code
    this.receiveState = 'finReceived'
  }

  // Closing.

  /**
   * True if the event loop has not looked for data since the program was notified of the connection. Over TCP the
   * program would have been notified before the server accepted: data of the server would not be there yet.
   */
  private isJustConnected(): boolean {
    // Within one thread the order is known: data that the server has written is there.
    if (this.role === 'server' || this.channel.isLoopback) return false
    return this.isFresh || this.connectedAt === this.channel.host.lookCount()
  }

  private isBroken(): boolean {
    return this.peerClosed || (this.state !== 'open' && this.state !== 'presumed') || !this.channel.isOpen
  }

  /** As in TCP: data for a closed socket, but not a bare FIN, is answered by a reset. */
  private answerClosed(): undefined {
    this.closeHow = CLOSE_RESET
    this.clearSending()
    this.sendClose()
  }

  /** Sends the CLOSE, after the completed writes of the program. */
  private sendClose(): void {
    const { channel, out } = this
    this.hasCloseBegun = true
    this.isCloseOwed = true
    if (channel.isOpen && this.unsentLength > 0) return
    if (channel.isOpen) {
      const mayGo = this.zcopy === undefined || this.zcopy.resume()
      const at = mayGo
        ? out.reserveOneWay(CLOSE, CLOSE_WORDS, -this.id, this.closeHow, this.closeReceived, 0, 0)
        : -1
      this.isCloseOwed = at < 0
      if (this.isCloseOwed) return this.scheduleSend()
      out.commitOneWay(0)
    } else this.isCloseOwed = false
    this.isCloseOut = true
  }

  private release(): void {
    this.onClosed?.()
    this.onClosed = undefined
    this.channel.hide(this)
  }

  private finish(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.zcopy?.dropPosted()
    this.zcopy?.dropOffers()
    this.release()
    this.sink = undefined
    this.clearSending()
    this.channel.forget(this)
  }
}
