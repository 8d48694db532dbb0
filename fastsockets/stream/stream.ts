/**
 * One byte stream each way between two sockets: sequence numbers, byte credits, half-close, reset. It knows nothing of
 * `net.Socket`; a `StreamSink` does, and a `SocketChannel` carries the messages (stream-layout.ts).
 *
 * A write goes out at once; only what finds no window or room is kept (outgoing.ts). Received bytes are kept only when the sink
 * does not read: otherwise they go straight on (receive posting).
 */
import { ablation } from '../../nic/index.ts'
import { lookCount } from '../host/io-turns.ts'
import { drainTicks } from '../host/node-internals.ts'
import { TELLS_OF_LATE_RESETS } from '../host/node-versions.ts'
import { codeOfEnd } from '../host/socket-errors.ts'
import { StreamCounts } from '../status/stream-counts.ts'
import { ReceiveWindow } from './byte-windows.ts'
import { Handshake } from './handshake.ts'
import { Outgoing } from './outgoing.ts'
import { OwnClose } from './own-close.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import type { SocketChannel } from './socket-channel.ts'
import type { StreamAddresses } from './stream-addresses.ts'
import { CLOSE_EARLY, CLOSE_RESET } from './stream-layout.ts'
import { sendConsumed } from './stream-messages.ts'
import { hideStream, showStream } from './stream-rows.ts'
import type { StreamErrorCode, StreamSink } from './stream-sink.ts'
import { windowToGrant } from './unread-budget.ts'
import { ChunkFetches } from './zcopy/chunk-fetches.ts'
import { PostedSink } from './zcopy/posted-sink.ts'

export type { StreamErrorCode, StreamSink } from './stream-sink.ts'

/** Linux hands so many bytes to the loopback device at once (GSO_MAX_SIZE); a longer write meets the peer's reset and fails. */
const LOST_MAX = 512 * 1024
const POSTS = ablation('no-posting') === undefined

/** `presumed`: the program takes it for connected, and the peer has not answered yet. */
type State = 'connecting' | 'presumed' | 'open' | 'closing' | 'closed'
type ReceiveState = 'open' | 'finReceived' | 'ended'

export class Stream {
  readonly channel: SocketChannel
  readonly id: number
  readonly role: 'client' | 'server'
  readonly handshake = new Handshake()
  sink: StreamSink | undefined
  addresses: StreamAddresses | undefined
  unixPath: string | undefined
  /** The client's port if the server accepts; 0 if it has not said so before, `PORT_AWAITED` while it may. */
  promisedPort = 0
  /** Called once, when this side has closed or the channel is gone. */
  onClosed: (() => void) | undefined
  readonly counts = new StreamCounts()
  /** The channel's: posted pieces that were not handed over yet. */
  postedCount = 0
  /** Those of the channel in which it waits, a bit for each. */
  queues = 0
  state: State = 'connecting'
  /** Nothing is delivered yet (fresh-streams.ts). */
  isFresh = false

  #receiveState: ReceiveState = 'open'
  readonly receiving: ReceiveWindow
  readonly fetches = new ChunkFetches(this)
  readonly postedSink = new PostedSink(this)
  readonly outgoing = new Outgoing(this)
  readonly #buffer = new ReceiveBuffer()
  /** What ends the stream once all is delivered. */
  #failure: { code: StreamErrorCode; syscall: 'read' | 'write'; cause: Error | undefined } | undefined
  /** The channel's turn in which data was handed over last. */
  #deliveredInTurn = -1
  #peerClosed = false
  /** What a write fails with if there is no failure that nobody has heard of. */
  #writeError: StreamErrorCode = 'EPIPE'
  /** TCP hears only by a write that the peer has closed: the first one is taken, and lost. */
  #losesNextWrite = false
  readonly #close = new OwnClose(this)
  /** When the program heard that it is connected, as `lookCount` counts; only of a client. */
  #toldAt = Number.NaN

  /** `promisedWindow`: what its client may have sent already. */
  constructor(channel: SocketChannel, id: number, role: 'client' | 'server', promisedWindow = 0) {
    this.channel = channel
    this.id = id
    this.role = role
    this.receiving = new ReceiveWindow(Math.max(promisedWindow, windowToGrant()))
  }

  /** How the peer is told that it is meant. */
  get peerId(): number {
    return -this.id
  }

  /** Takes what waits in the receive buffer into `target`; returns how much. */
  takeInto(target: Uint8Array): number {
    const taken = this.#buffer.takeInto(target)
    if (taken > 0) this.consume(taken)
    return taken
  }

  /** Something waits: data, the end, or an error. */
  get isReadable(): boolean {
    return (
      this.#buffer.length > 0 ||
      this.fetches.isOpen ||
      this.#receiveState !== 'open' ||
      this.#failure !== undefined
    )
  }

  /** Received, and not taken yet: the part of the window that is shut. */
  get waitingLength(): number {
    return this.#buffer.length
  }

  /** Whether a write can only fail, as after shutdown(2) or when the peer is gone. */
  get refusesWrites(): boolean {
    return this.outgoing.isFinished || this.#isBroken
  }

  /** What such a write fails with: an error that nobody has heard of yet comes first, as in TCP. */
  get writeError(): StreamErrorCode {
    return this.#failure?.code ?? this.#writeError
  }

  /**
   * What becomes of a refused write of `length` bytes. TCP loses the first one after the peer has closed; of a longer one it takes
   * the first part, so that libuv fails with the second. On a unix path the kernel refuses it.
   */
  fateOfWrite(length: number): 'lost' | 'fails' | 'fails late' {
    const isFirst = this.#losesNextWrite && this.unixPath === undefined
    this.#losesNextWrite = false
    if (!isFirst || this.outgoing.isFinished || this.state !== 'open') return 'fails'
    return length <= LOST_MAX ? 'lost' : 'fails late'
  }

  /** True if FIN is out already. */
  shutdown(): boolean {
    return this.refusesWrites || this.outgoing.finish()
  }

  /** Deliver what waits; later, not within the caller's own stack. */
  startReading(): void {
    if (this.#receiveState !== 'ended' && this.isReadable) this.channel.deliveries.schedule(this)
  }

  /** Like close(2): no more calls to the sink. Unread bytes make it a reset, as in TCP. */
  close(reset: boolean): void {
    if (this.state === 'closing' || this.state === 'closed') return
    const isEarly = !this.handshake.isAnswered || this.#isJustTold
    const isUnread = this.#buffer.length > 0 || this.postedCount > 0 || this.fetches.isOpen
    this.#close.decide(reset || (isUnread && !isEarly), isEarly, this.receiving.sequence)
    this.#release()
    this.sink = undefined
    this.outgoing.close(this.#close.isReset || this.#isBroken)
    this.postedSink.revoke()
    this.#buffer.clear()
    this.fetches.drop()
    this.state = 'closing'
    if (!this.channel.isOpen) return this.#finish()
    // The answer to CONNECT will find it closing.
    if (!this.handshake.maySend) return
    this.#close.send()
    if (this.#peerClosed && !this.#close.isOwed) this.#finish()
  }

  handleAsked(): void {
    this.handshake.isAsked = true
    if (this.handshake.isPresumed) this.channel.scheduleSend(this)
  }

  handleAccepted(window: number): void {
    const { handshake } = this
    handshake.isAnswered = true
    this.outgoing.window.open(window)
    this.sink?.handleAnswered?.()
    if (this.state === 'closing') {
      if (!this.#close.hasBegun) this.#close.send()
      return this.channel.scheduleSend(this)
    }
    this.state = 'open'
    showStream(this, window)
    if (this.outgoing.isFinished) this.counts.endedHere()
    if (!handshake.isPresumed) this.tellConnected()
    else if (this.outgoing.hasUnsent) this.channel.scheduleSend(this)
  }

  tellConnected(): void {
    if (this.role === 'client') this.#toldAt = lookCount()
    this.sink?.handleConnected()
  }

  /**
   * The program has heard that it is connected, and the event loop has not looked for data since. Of TCP it would have heard
   * before the server had accepted: what the server has sent by now would not be there yet.
   */
  get #isJustTold(): boolean {
    // Within one thread the order is known: what the server has written was there.
    if (this.role === 'server' || this.channel.transport === 'loopback') return false
    return this.isFresh || this.#toldAt === lookCount()
  }

  handleRefused(refusal: number | undefined): void {
    const { sink } = this
    this.#finish()
    sink?.handleRefused(refusal)
  }

  /** Data for this stream; returns what is wrong with it, if anything. */
  handleData(
    sequence: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    fin: boolean,
  ): string | undefined {
    if (sequence !== this.receiving.sequence)
      return `sequence ${sequence >>> 0} where ${this.receiving.sequence >>> 0} was due`
    if (this.receiving.isOverrunBy(length)) return `${length} bytes beyond the window`
    if (this.#receiveState !== 'open') return 'data after the end'
    if (this.fetches.isOpen) return 'data behind an offer'
    this.receiving.advance(length)
    if (this.state === 'closing') return length > 0 ? this.#answerClosed() : undefined
    this.postedSink.noteVoid()
    this.counts.received(length)
    const placed = this.#place(bytes, offset, length)
    if (placed < length) this.#keep(bytes, offset + placed, length - placed)
    if (fin) {
      this.#receiveState = 'finReceived'
      this.counts.endedByPeer()
      this.channel.deliveries.schedule(this)
    }
    return undefined
  }

  /** As TCP does: data for somebody who has closed, and not a bare FIN, is answered by a reset. */
  #answerClosed(): undefined {
    this.#close.turnIntoReset()
    this.outgoing.clear()
    this.#close.send()
  }

  /** The peer has written its next bytes where a receive is posted; returns what is wrong with that, if anything. */
  handleWriteCompleted(sequence: number, length: number): string | undefined {
    if (sequence !== this.receiving.sequence || this.#receiveState !== 'open')
      return 'a write out of sequence'
    if (!this.postedSink.complete(length)) return `a write of ${length} bytes where no receive is posted`
    this.receiving.advance(length)
    if (this.state === 'closing') return this.#answerClosed()
    this.counts.received(length)
    this.counts.fetched(length)
    this.sink?.handlePosted?.(length)
    this.consume(length)
    this.channel.deliveries.schedule(this)
    return undefined
  }

  /** The peer offers its next bytes instead of sending them; returns what is wrong with that, if anything. */
  handleSourceAvailable(sequence: number, length: number, key: Uint8Array): string | undefined {
    if (sequence !== this.receiving.sequence) return 'an offer out of sequence'
    if (this.#receiveState !== 'open') return 'an offer after the end'
    if (this.fetches.isOpen) return 'an offer behind an offer'
    if (this.state === 'closing') return this.#answerClosed()
    this.postedSink.noteVoid()
    this.postedSink.noteLargeChunk()
    if (!this.fetches.open(key, length)) return `an offer of ${length} bytes with a key that does not fit`
    this.channel.deliveries.schedule(this)
    return undefined
  }

  /** Straight from the ring into the buffers that a raw socket has posted; what was there before comes first. */
  #place(bytes: Uint8Array, offset: number, length: number): number {
    const { sink } = this
    if (!POSTS || sink?.place === undefined || length === 0 || this.#buffer.length > 0) return 0
    const placed = sink.place(bytes, offset, length)
    if (placed > 0) this.consume(placed)
    return placed
  }

  #keep(bytes: Uint8Array, offset: number, length: number): void {
    // Behind posted bytes that are still on their way, everything else must queue, too.
    if (POSTS && (this.postedCount > 0 || this.#isPosted())) {
      this.channel.deliveries.post(this, bytes, offset, length)
      return
    }
    this.#store(bytes, offset, length)
    if (!POSTS) this.channel.deliveries.schedule(this)
    this.sink?.handleArrival?.()
  }

  handleClosed(how: number, received: number): void {
    // What was sent to a client that closed early came after its end.
    const isReset = how === CLOSE_RESET || (how !== CLOSE_EARLY && this.outgoing.isBeyond(received))
    this.#peerClosed = true
    this.fetches.drop()
    this.outgoing.dropOffer()
    if (this.state === 'closing') {
      if (this.outgoing.hasUnsent) this.#answerClosed()
      // Also if it should hear of a reset, too: its number may come again at once.
      if (this.#close.isOut) return this.#finish()
    }
    if (this.state !== 'open') return
    this.counts.endedByPeer()
    const { writeCount } = this.outgoing
    this.#losesNextWrite = !isReset && (how !== CLOSE_EARLY || writeCount === 0)
    // A kernel had taken the first write, and had heard of it that the client is closed before the second.
    if (how === CLOSE_EARLY && writeCount > 1) this.fail('EPIPE', 'write', undefined)
    if (this.#receiveState === 'open') {
      const isWritten = this.outgoing.hearsOfReset(this.sink?.isReading || this.sink?.isFeeding)
      if (isReset) {
        this.fail('ECONNRESET', isWritten ? 'write' : 'read', undefined)
        // libuv reads the data, and finds the reset with it.
        if (this.postedCount > 0 && this.sink?.isReading === true) this.#endInPlaceOfReset()
      } else if (this.outgoing.hasUnsent) this.fail('ECONNRESET', 'write', undefined)
      else this.#receiveState = 'finReceived'
    } else if (this.outgoing.hasUnsent) {
      // The end had come before the reset: reading ends well all the same, as in TCP.
      this.fail('EPIPE', 'write', undefined)
    }
    this.channel.deliveries.schedule(this)
  }

  /** The channel is no more: the peer died, or broke the protocol (`cause`). */
  handleChannelGone(cause: Error | undefined): void {
    this.#peerClosed = true
    this.fetches.drop()
    this.outgoing.dropOffer()
    if (this.state === 'connecting' || this.state === 'presumed') return this.handleRefused(undefined)
    if (this.state === 'closing') return this.#finish()
    this.counts.endedByPeer()
    this.#losesNextWrite = cause === undefined
    if (cause !== undefined) this.fail(codeOfEnd(cause), 'read', cause)
    else if (this.outgoing.hasUnsent) this.fail('ECONNRESET', 'write', undefined)
    else if (this.#receiveState === 'open') this.#receiveState = 'finReceived'
    this.channel.deliveries.schedule(this)
  }

  /** Everything that was refused before, in order; false if it is refused again. */
  resume(): boolean {
    if (!this.outgoing.resume()) return false
    if (!this.fetches.resume()) return false
    if (!this.#reportConsumed()) return false
    if (this.#close.isOwed && !this.outgoing.hasUnsent) {
      this.#close.send()
      if (this.#close.isOwed) return false
      if (this.#peerClosed) this.#finish()
    }
    return true
  }

  /**
   * Hands over what waits while the sink reads. The end, or an error, comes a turn after the last data, as it does with
   * TCP, where it takes another read: a program that has all it wants may close the socket first.
   */
  deliver(): void {
    while (this.#buffer.length > 0 && this.sink?.isReading) {
      const isLent = this.sink.copies === true
      this.handOver(isLent ? this.#buffer.peek() : this.#buffer.take(), isLent)
      if (this.#buffer.length === 0) this.#endInPlaceOfReset()
      if (!this.#isRaw) drainTicks()
    }
    if (this.sink === undefined) return
    // If something is left in the buffer, nobody reads: then the offer must not wait for it.
    if (this.fetches.isOpen) this.fetches.fetch(this.sink)
    if (!this.channel.isOpen && this.outgoing.giveUpFin()) this.sink?.handleShutdown()
    if (this.sink === undefined) return
    if (this.#failure?.syscall === 'write') this.sink.handleWriteFailed?.(this.#failure.code)
    this.sink.handleArrival?.()
    if (this.#failure !== undefined && this.sink.isFeeding) return this.channel.deliveries.schedule(this)
    const endsWrite = this.#endsWrite()
    if (this.#buffer.length > 0 && !endsWrite) return
    if (this.#deliveredInTurn === this.channel.deliveries.turn) {
      if (this.#failure !== undefined || this.#receiveState === 'finReceived')
        this.channel.deliveries.schedule(this)
      return
    }
    if (this.#failure !== undefined) {
      const { code, cause, syscall: failed } = this.#failure
      // The write that waited at the reset may be over by now: then it is the read that fails, as over TCP.
      const isOver = failed === 'write' && code === 'ECONNRESET' && !this.outgoing.isWaiting
      const syscall = endsWrite ? 'write' : isOver ? 'read' : failed
      // Who does not read does not hear of it, unless by a write that waits. Raw sockets are asked, not told.
      if (!endsWrite && !this.sink.isReading && !this.#isRaw) return
      this.#failure = undefined
      this.#receiveState = 'ended'
      this.sink.handleError(code, syscall, cause)
    } else if (this.#receiveState === 'finReceived' && this.sink.isReading) {
      this.#receiveState = 'ended'
      this.sink.handleEnd()
    }
  }

  /** A write that waits hears of its end from libuv though nobody reads; what is unread is gone with its socket. */
  #endsWrite(): boolean {
    if (this.#failure === undefined || this.#isRaw || this.sink?.isReading === true) return false
    return this.#failure.code !== 'ECONNRESET' || this.outgoing.isWaiting
  }

  /** Older libuv tells who reads what was there before a reset that it is the end: only a write, if one waits, says more. */
  #endInPlaceOfReset(): void {
    const failure = this.#failure
    if (TELLS_OF_LATE_RESETS || this.#isRaw || failure?.code !== 'ECONNRESET') return
    if (failure.syscall !== 'read' || failure.cause !== undefined) return
    this.#failure = this.outgoing.hasUnsent ? { ...failure, syscall: 'write' } : undefined
    if (this.#failure !== undefined) return
    this.#writeError = failure.code
    this.#receiveState = 'finReceived'
  }

  /** Bytes that were posted, now in memory of their own. */
  deliverPosted(bytes: Buffer): void {
    if (this.#isPosted()) return this.handOver(bytes)
    if (this.state !== 'open') return
    this.#store(bytes, 0, bytes.length)
  }

  #store(bytes: Uint8Array, offset: number, length: number): void {
    this.#buffer.append(bytes, offset, length)
    this.counts.buffered(length)
  }

  /** `isLent`: they stay in the receive buffer until they are taken. */
  handOver(bytes: Buffer, isLent = false): void {
    const { sink } = this
    if (sink === undefined) return
    this.#deliveredInTurn = this.channel.deliveries.turn
    // The program may transfer the memory of what it gets: nothing is read from it afterwards. A listener that throws has had it.
    const { length } = bytes
    let taken = length
    try {
      taken = sink.handleData(bytes)
    } finally {
      // The sink may have closed meanwhile; then nobody wants the rest either.
      if (isLent) this.#buffer.skip(taken)
      else if (taken < length && this.sink !== undefined) this.#store(bytes, taken, length - taken)
      this.consume(taken)
    }
  }

  consume(taken: number): void {
    this.receiving.consume(taken)
    this.counts.taken(taken)
    if (!this.#reportConsumed()) this.channel.scheduleSend(this)
  }

  get #isBroken(): boolean {
    return this.#peerClosed || (this.state !== 'open' && this.state !== 'presumed') || !this.channel.isOpen
  }

  get #isRaw(): boolean {
    return this.sink?.place !== undefined
  }

  #isPosted(): boolean {
    return this.#buffer.length === 0 && this.sink?.isReading === true
  }

  /** If it is due; false if there is no room for it. */
  #reportConsumed(): boolean {
    if (this.state !== 'open' || this.#peerClosed || !this.receiving.isReportDue) return true
    if (!sendConsumed(this.channel.channel, this.peerId, this.receiving.reported)) return false
    this.receiving.noteReported()
    return true
  }

  fail(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
    this.#failure ??= { code, syscall, cause }
  }

  #release(): void {
    this.onClosed?.()
    this.onClosed = undefined
    hideStream(this)
  }

  #finish(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.postedSink.drop()
    this.outgoing.dropOffer()
    this.#release()
    this.sink = undefined
    this.outgoing.clear()
    this.channel.forget(this)
  }
}
