/**
 * All sockets between this thread and one peer: one active-message channel, a table of streams, and a lifeline whose
 * end says that the peer is gone. A slow reader stops only its own sender, because every frame is consumed as soon as
 * it is polled.
 */
import {
  AmError,
  type Channel,
  ChannelGroup,
  type ChannelOwner,
  channelOf,
  type EventLoop,
  type Message,
  PollLoop,
} from '../../am/channels.ts'
import { copyBytes, isOwnUser, type VirtualInterface } from '../../nic/index.ts'
import { REFUSAL } from '../bootstrap/bootstrap-layout.ts'
import { codeOfEnd } from '../host/socket-errors.ts'
import { PortShare } from '../host/synthetic-ports.ts'
import type { Asked } from '../host/unix-paths.ts'
import { StreamCounts } from '../status/stream-counts.ts'
import { type ChannelHost, processHost, rawHost } from './channel-host.ts'
import { Deliveries } from './deliveries.ts'
import { drainSome } from './drain-ring.ts'
import { EarlyConnects } from './early-connects.ts'
import type { Lifeline } from './lifeline.ts'
import { AwaitedPorts, knowsItsPort, PromisedPorts } from './promised-ports.ts'
import { Stream, type StreamChannel } from './stream.ts'
import {
  ACCEPT,
  BOUND,
  BOUND_WORDS,
  BYTES_WORDS,
  CHANNEL_CREDITS,
  CLOSE,
  CLOSE_WORDS,
  CONNECT,
  CONNECT_WORDS,
  CONSUMED,
  CONSUMED_WORDS,
  DATA,
  EARLY_WINDOW,
  KEY_MAX,
  PORTS_PROMISED_MAX,
  RD_COMPL,
  RD_COMPL_WORDS,
  REFUSE,
  SEGMENT_MAX,
  SINK_AVAIL,
  SRC_AVAIL,
  THRESHOLD_MIN,
  WINDOW_MAX,
  WR_COMPL,
} from './stream-layout.ts'
import { StreamQueue } from './stream-queue.ts'
import type { StreamErrorCode, StreamSink } from './stream-sink.ts'
import { StreamTable } from './stream-table.ts'
import { UnreadShare } from './unread-budget.ts'
import { type Connect, WaitingConnects } from './waiting-connects.ts'
import { OneSided } from './zcopy/one-sided.ts'
import type { PeerMemory } from './zcopy/zcopy.ts'

/** Most polls of a dead peer's queue, more than fill a ring: a peer that has ended its lifeline may live, and go on sending. */
const DRAINS_MAX = 16384
/** Sockets that are told of their channel's end between two looks at the time. */
const TOLD_AT_ONCE = 256
/** Bytes that a busy machine copies in a millisecond. */
const COPIED_PER_MS = 4 << 20
/** Of a CONNECT; two IPv6 addresses and a port if it names a TCP connection. */
const ADDRESS_MAX = 96
/** Decodes bytes without copying them. */
const latin1Slice = Buffer.prototype.latin1Slice as (this: Uint8Array, start: number, end: number) => string

/** A stream of a channel of sockets. */
export type SocketStream = Stream & { readonly channel: SocketChannel }

export interface Accepted {
  readonly clientPort: number
  readonly begin: () => void
}

/**
 * Decides about a peer's CONNECT; returns the new stream's acceptance, or the number of a refusal. `promisedPort`: the
 * client's port, if it was promised; 0 otherwise.
 */
export type Acceptor = (
  stream: SocketStream,
  port: number,
  address: string,
  family: Asked,
  promisedPort: number,
) => number | Accepted

/** `handleSourceAvailable` or `handleSinkAvailable`: what is wrong with the offer, if anything. */
type HandleOffer = (this: Stream, sequence: number, length: number, key: Uint8Array) => string | undefined

/** The addresses of two sides that have different ones. */
export interface Way {
  /** Empty if the peer was not asked which of our addresses it calls. */
  readonly own: string
  readonly peer: string
  /** The peer is in another network namespace of this host, and knows our rendezvous folder. */
  readonly isThroughFolder: boolean
}

/** What the channels of one peer have together: a process, or all processes of another user. */
export interface PeerShares {
  readonly ports: PortShare
  readonly unread: UnreadShare
}

export class SocketChannel implements ChannelOwner, StreamChannel {
  readonly channel: Channel
  readonly host: ChannelHost
  readonly peerName: string
  readonly destination = undefined
  lifeline: Lifeline | undefined
  /** Client ports of the peer's connections. */
  readonly portShare: PortShare
  /** The peer's share of the budget for unread data. */
  readonly unread: UnreadShare
  /** Undefined within one network namespace. */
  way: Way | undefined
  /** The peer's user, by the kernel; undefined for another host, and for this thread. */
  peerUid: number | undefined
  zcopyElse: 'refused' | 'off' | undefined
  /** The bootstrap's transcript that the peer must send first; undefined after that, or without a bootstrap. */
  private awaitedTranscript: Buffer | undefined
  /** Called when the peer has sent the same transcript. */
  onBound: () => void = () => {}
  private readonly accept: Acceptor
  private readonly onGone: (channel: SocketChannel) => void
  readonly streams = new StreamTable(this)
  private readonly connects = new WaitingConnects()
  private readonly toSend = new StreamQueue(1)
  readonly deliveries = new Deliveries(this)
  private readonly early = new EarlyConnects(this)
  private readonly promised: PromisedPorts
  private readonly awaited = new AwaitedPorts()
  private offerMinFound: number | undefined
  private peerMemory: PeerMemory | undefined
  private isResuming = false
  isOpen = true
  /** The peer is gone, and its last messages are being handled. */
  private isLeaving = false
  private leaveCause: Error | undefined
  private isLeaveDue = false
  private drainsLeft = DRAINS_MAX
  refCount = 0
  readonly isRaw: boolean
  readonly isLoopback: boolean
  /** Payload of one DATA message. */
  readonly segmentMax: number
  /** Writes up to this size fit into one message, and are never offered. */
  readonly smallMax: number
  private readonly pollLoop: PollLoop

  constructor(
    end: VirtualInterface,
    peerName: string,
    accept: Acceptor,
    onGone: (channel: SocketChannel) => void,
    isRaw = false,
    transcript?: Buffer,
    { ports, unread }: PeerShares = { ports: new PortShare(), unread: new UnreadShare() },
    host = isRaw ? rawHost : processHost,
  ) {
    this.host = host
    this.pollLoop = new PollLoop(host.clock)
    this.portShare = ports
    this.unread = unread
    this.peerName = peerName
    this.accept = accept
    this.onGone = onGone
    this.isRaw = isRaw
    this.isLoopback = end.driver === 'loopback'
    // Raw sockets wait for the answer, and a thread cannot wait for itself.
    const promisedMax = isRaw || end.driver === 'loopback' ? 0 : PORTS_PROMISED_MAX
    this.promised = new PromisedPorts(promisedMax, this)
    this.channel = endpointOf(host.eventLoop).attach(end, { credits: CHANNEL_CREDITS, owner: this })
    // The windows of the streams bound what is under way.
    end.useOverflow?.()
    this.segmentMax = Math.min(SEGMENT_MAX, this.channel.mediumMax)
    this.smallMax = Math.min(THRESHOLD_MIN - 1, this.segmentMax)
    host.showClosedListeners(end)
    this.awaitedTranscript = transcript
    if (transcript === undefined || this.sendBound(transcript)) return
    endpointOf(host.eventLoop).detach(this.channel)
    throw new Error('the channel has no room for its first message')
  }

  /** The kernel says that the peer is of our own user: only such a peer may name a socket that exists, and get its bytes. */
  get isOfOwnUser(): boolean {
    return this.isLoopback || (this.peerUid !== undefined && isOwnUser(this.peerUid))
  }

  /** Chunks of at least this length are offered instead of sent. */
  get offerMin(): number {
    this.offerMinFound ??= this.mayOffer ? this.host.offerMinOf(this.transport) : Number.POSITIVE_INFINITY
    return this.offerMinFound
  }

  /** True if one process can read the other's memory; the system may refuse it. */
  get mayOffer(): boolean {
    return this.channel.end.capabilities.rdmaRead
  }

  get memory(): PeerMemory {
    this.peerMemory ??= new OneSided(this.channel.end)
    return this.peerMemory
  }

  noteOffer(length: number): void {
    this.channel.peerCopiesUntilMs = this.host.clock.now() + length / COPIED_PER_MS
  }

  get transport(): string {
    return this.channel.end.driver
  }

  /** How many listeners the peer has closed; undefined if that is not visible, as on another host. */
  get listenersClosed(): number | undefined {
    return this.channel.end.shownWord
  }

  /**
   * The program may be notified before the answer, if the peer's count of closed listeners still is `listenersClosed`
   * then. `notifiedAt`: the `lookCount` at which it may be.
   */
  presumeSoon(stream: Stream, listenersClosed: number, notifiedAt: number): void {
    // Not if the CONNECT is not sent, the peer may be out of room, or `lookCount` is unknown.
    if (this.connects.size > 0 || !this.streams.hasPlenty || Number.isNaN(notifiedAt)) return
    this.early.add(stream, listenersClosed, notifiedAt)
    this.channel.touch()
  }

  /** For new sockets. */
  get isUsable(): boolean {
    return this.isOpen && !this.isLeaving
  }

  /** Asks the peer for a connection to its listener (`Reached.address`); undefined at the limit of sockets. */
  connect(sink: StreamSink, port: number, address: string, family: Asked): SocketStream | undefined {
    if (!this.isUsable || this.streams.isFull) return undefined
    const stream = this.newStream(this.streams.allocateId(), 'client')
    stream.sink = sink
    this.streams.put(stream)
    const connect = { stream, port, address, family }
    if (this.connects.size === 0 && this.ask(connect)) return stream
    this.connects.add(connect)
    this.channel.touch()
    return stream
  }

  private readonly ask = (connect: Connect): boolean => {
    const { stream, port, address } = connect
    const { channel } = this
    const at = channel.reserveRequest(CONNECT, CONNECT_WORDS, address.length)
    if (at < 0) return false
    channel.putWord(0, stream.id)
    channel.putWord(1, port)
    channel.putWord(2, stream.window)
    channel.putWord(3, connect.family)
    for (let i = 0; i < address.length; i++) channel.sendBytes[at + i] = address.charCodeAt(i)
    channel.commit(address.length)
    this.awaited.handleAsked(stream)
    stream.handleAsked()
    return true
  }

  /** Notifies the program before there is an answer. */
  presumeConnected(stream: Stream): void {
    stream.presumeConnected()
    if (stream.promisedPort > 0 && stream.addresses !== undefined)
      stream.addresses.clientPort = stream.promisedPort
    // Otherwise it is shown after the answer, which has the port.
    if (knowsItsPort(stream)) this.show(stream, stream.earlyWindow)
  }

  /** Ends the channel. Its sockets, and the peer, see the other side as gone. */
  close(): void {
    this.end(undefined)
  }

  /** The peer is gone or, with a cause, broke the protocol. Frames in the ring are delivered first. */
  handlePeerGone(cause?: Error): void {
    if (!this.isOpen) return
    if (!this.isLeaving) {
      this.isLeaving = true
      this.leaveCause = cause
      this.channel.end.expectEnd?.()
      this.onGone(this)
    }
    this.leave()
  }

  private leave(): void {
    if (!this.isOpen) return
    const { departures } = this.host
    while (this.drainsLeft > 0) {
      if (!departures.hasTime()) return this.leaveLater()
      this.drainsLeft--
      if (!drainSome(this.channel)) break
    }
    this.end(this.leaveCause)
  }

  private leaveLater(): void {
    if (this.isLeaveDue) return
    this.isLeaveDue = true
    this.host.departures.goOnLater(() => {
      this.isLeaveDue = false
      this.leave()
    })
  }

  /** Handles up to `limit` messages, for raw sockets that poll, perhaps without ever running the event loop. */
  pollNow(limit: number): number {
    const handled = this.progress(limit)
    if (this.lifeline !== undefined) this.pollLoop.handlePoll(handled, this.lifeline)
    return handled
  }

  private progress(limit: number): number {
    const { channel } = this
    if (channel.state !== 'open') return channel.progress(limit)
    const count = channel.poll(limit)
    const mayDeliver = count !== 0 || channel.isTouched
    const mayResume = this.toSend.size > 0 || this.connects.size > 0 || this.early.size > 0
    return mayDeliver || mayResume ? channel.deliver() : 0
  }

  scheduleSend(stream: Stream): void {
    this.toSend.add(stream)
    // A stream that is refused again waits for room or credit; the doorbell then wakes this thread.
    if (!this.isResuming) this.channel.touch()
  }

  scheduleTurn(): void {
    this.channel.touch()
  }

  show(stream: Stream, window: number): void {
    this.host.show(stream, window, this)
  }

  hide(stream: Stream): void {
    this.host.hide(stream, this.transport)
  }

  forget(stream: Stream): void {
    this.streams.delete(stream)
    this.toSend.delete(stream)
    this.deliveries.forget(stream)
  }

  /**
   * Any counted socket makes the doorbell keep the event loop alive, and after it the lifeline, until the end is
   * delivered.
   */
  ref(): void {
    if (this.refCount++ > 0) return
    this.channel.end.ref()
    this.lifeline?.ref()
  }

  unref(): void {
    if (--this.refCount > 0) return
    this.channel.end.unref()
    this.lifeline?.unref()
  }

  /** The second half of a turn. A write completes before the answer to it is delivered. */
  handleProgress(): void {
    try {
      if (this.early.size > 0) this.deliverEarly()
      if (this.toSend.size > 0 || this.connects.size > 0) this.resumeSending()
      this.deliveries.deliver()
    } finally {
      this.deliveries.endTurn()
    }
  }

  private deliverEarly(): void {
    try {
      this.early.deliver()
    } finally {
      if (this.early.size > 0) this.channel.touch()
    }
  }

  private resumeSending(): void {
    if (this.connects.size > 0 && !this.connects.resume(this.streams, this.ask)) return
    // Only streams that wait now: one that writes meanwhile is sent in the next turn.
    for (let left = this.toSend.size; left > 0; left--) {
      const { first } = this.toSend
      if (first === undefined || !this.resume(first)) return
    }
  }

  /** Retries a refused send; false if it is refused again. The stream stays queued if a callback throws. */
  private resume(stream: Stream): boolean {
    this.toSend.delete(stream)
    let isDone = false
    this.isResuming = true
    try {
      isDone = stream.resume()
    } finally {
      this.isResuming = false
      if (!isDone && stream.state !== 'closed') this.toSend.add(stream)
    }
    // The sink may have completed a write.
    this.host.drainTicks()
    return isDone
  }

  roomWanted(): number {
    const mayAsk = this.connects.size > 0 && this.channel.creditsLeft > 0
    return this.toSend.size > 0 || mayAsk ? this.segmentMax : 0
  }

  handleBroken(error: AmError): void {
    this.end(error)
  }

  // Messages of the peer.

  handleBound(message: Message): void {
    const transcript = this.awaitedTranscript
    if (transcript?.equals(message.copy()) !== true)
      return this.refuse('it has heard another bootstrap than was said')
    if (!this.awaited.handleFirst(message.word(0))) return this.refuse('a BOUND with an impossible window')
    this.awaitedTranscript = undefined
    this.onBound()
  }

  handleConnect(message: Message): void {
    if (this.awaitedTranscript !== undefined) return this.refuse('a CONNECT before the BOUND')
    const from = message.word(0)
    const port = message.word(1)
    const window = message.word(2)
    const family = message.word(3) as Asked
    if (from <= 0 || message.length > ADDRESS_MAX || window <= 0 || window > WINDOW_MAX)
      return this.refuse('a CONNECT out of bounds')
    if (!this.streams.hasPlaceFor(-from)) return this.refuse(`a CONNECT as ${from} in the place of another`)
    const { bytes, offset, length } = message
    const address = latin1Slice.call(bytes, offset, offset + length)
    const promised = this.promised.dequeue()
    const hasRoom = !this.streams.isFull && this.unread.mayGrant()
    const stream = hasRoom ? this.newStream(-from, 'server', promised.window) : undefined
    let accepted: Accepted | number = REFUSAL.NOT_LISTENING
    try {
      accepted = stream ? this.accept(stream, port, address, family, promised.port) : REFUSAL.LIMIT
    } finally {
      // A getter of the program's server may have thrown: the client must not wait for ever.
      if (typeof accepted === 'number') {
        this.streams.noteRefused(-from)
        this.portShare.release(promised.port)
        message.reply(REFUSE, from, accepted)
      }
    }
    if (stream === undefined || typeof accepted === 'number') return
    this.streams.put(stream)
    stream.handleAccepted(window)
    const [a, b, c, d] = this.promised.promise(stream.window)
    message.reply(ACCEPT, from, stream.window, accepted.clientPort, a, b, c, d)
    if (!this.isRaw) this.deliveries.addFresh(stream)
    accepted.begin()
    this.host.drainTicks()
  }

  handleAccept(message: Message): void {
    if (this.awaitedTranscript !== undefined) return this.refuse('an ACCEPT before the BOUND')
    const stream = this.streams.get(message.word(0))
    const window = message.word(1)
    const clientPort = message.word(2)
    if (!isAsked(stream)) return this.refuse('an ACCEPT without a CONNECT')
    if (window < EARLY_WINDOW || window > WINDOW_MAX) return this.refuse('an ACCEPT out of bounds')
    if (clientPort <= 0 || clientPort > 0xffff) return this.refuse(`client port ${clientPort}`)
    const promises = [message.word(3), message.word(4), message.word(5), message.word(6)]
    if (!this.awaited.handleAccepted(stream, clientPort, window, promises))
      return this.refuse('an ACCEPT out of turn, or ports that were or cannot be promised')
    if (stream.addresses !== undefined && !stream.isPromotion && !stream.isOfDatagrams)
      stream.addresses.clientPort = clientPort
    if (!this.isRaw && stream.state === 'connecting') this.deliveries.addFresh(stream)
    stream.handleAccepted(window)
    this.host.drainTicks()
  }

  handleRefuse(message: Message): void {
    const stream = this.streams.get(message.word(0))
    if (!isAsked(stream)) return this.refuse('a REFUSE without a CONNECT')
    if (!this.awaited.handleAnswered(stream)) return this.refuse('a REFUSE out of turn')
    stream.handleRefused(message.word(1))
    this.host.drainTicks()
  }

  handleData(words: Int32Array, wordCount: number, bytes: Uint8Array, offset: number, length: number): void {
    const to = words[0] as number
    const stream = this.streams.get(to)
    if (stream === undefined || !stream.isAnswered || wordCount !== BYTES_WORDS)
      return this.handleLostData(to)
    const fault = stream.handleData(
      words[1] as number,
      words[2] as number,
      words[3] as number,
      bytes,
      offset,
      length,
    )
    if (fault !== undefined) this.refuse(fault)
  }

  /** Data that a client sent before it received the REFUSE of its socket. */
  private handleLostData(to: number): void {
    if (!this.streams.wasRefused(to)) this.refuse(`data for socket ${to}`)
  }

  /** The handler of SRC_AVAIL or SINK_AVAIL, whose bytes are the key of the memory on offer. */
  static offerHandler(handleOffer: HandleOffer) {
    return function (
      this: SocketChannel,
      words: Int32Array,
      wordCount: number,
      bytes: Uint8Array,
      offset: number,
      length: number,
    ): void {
      const stream = this.placed(words, wordCount, length)
      if (stream === undefined) return
      const key = Uint8Array.prototype.slice.call(bytes, offset, offset + length)
      const fault = handleOffer.call(stream, words[1] as number, words[3] as number, key)
      if (fault !== undefined) this.refuse(fault)
    }
  }

  handleWriteCompleted(
    words: Int32Array,
    wordCount: number,
    _bytes: Uint8Array,
    _offset: number,
    length: number,
  ): void {
    const stream = this.placed(words, wordCount, length)
    const fault = stream?.handleWriteCompleted(words[1] as number, words[3] as number)
    if (fault !== undefined) this.refuse(fault)
  }

  /** The stream of a ZCopy message, after its `consumed` is handled. */
  private placed(words: Int32Array, wordCount: number, length: number): Stream | undefined {
    const to = words[0] as number
    const stream = this.streams.get(to)
    const fault =
      stream === undefined || !stream.isAnswered || length > KEY_MAX || wordCount !== BYTES_WORDS
        ? `ZCopy for socket ${to}`
        : stream.handleConsumed(words[2] as number)
    if (fault === undefined) return stream
    this.refuse(fault)
    return undefined
  }

  handleReadCompleted(words: Int32Array, wordCount: number): void {
    if (wordCount !== RD_COMPL_WORDS) return this.refuse(`RD_COMPL of ${wordCount} words`)
    const stream = this.streams.get(words[0] as number)
    // A closed socket, for which messages were under way, is ignored.
    const fault =
      stream?.handleReadCompleted(words[1] as number) ?? stream?.handleConsumed(words[2] as number)
    if (fault !== undefined) this.refuse(fault)
  }

  handleConsumed(words: Int32Array, wordCount: number): void {
    if (wordCount !== CONSUMED_WORDS) return this.refuse(`CONSUMED of ${wordCount} words`)
    // A closed socket, for which messages were under way, is ignored.
    const stream = this.streams.get(words[0] as number)
    if (stream?.isAnswered === false) return this.refuse('a CONSUMED before the ACCEPT')
    const fault = stream?.handleConsumed(words[1] as number)
    if (fault !== undefined) this.refuse(fault)
  }

  handleClose(words: Int32Array, wordCount: number): void {
    if (wordCount !== CLOSE_WORDS) return this.refuse(`CLOSE of ${wordCount} words`)
    const stream = this.streams.get(words[0] as number)
    if (stream === undefined) return
    if (!stream.isAnswered) return this.refuse('a CLOSE before the ACCEPT')
    stream.handleClosed(words[1] as number, words[2] as number)
  }

  private sendBound(transcript: Uint8Array): boolean {
    const { channel } = this
    const at = channel.reserveRequest(BOUND, BOUND_WORDS, transcript.length)
    if (at < 0) return false
    channel.putWord(0, this.promised.promiseFirst())
    copyBytes(transcript, 0, channel.sendBytes, at, transcript.length)
    channel.commit(transcript.length)
    return true
  }

  /** `promisedWindow`: bytes that the client may have sent already. */
  private newStream(id: number, role: 'client' | 'server', promisedWindow = 0): SocketStream {
    const window = Math.max(promisedWindow, this.unread.windowToGrant())
    const stream = new Stream(this, this.channel, id, role, window, new StreamCounts())
    return stream as Stream as SocketStream
  }

  /** The peer broke the rules of this layer: as bad as breaking those of the ring. */
  private refuse(what: string): void {
    this.end(new Error(`the peer broke the socket protocol: ${what}`))
  }

  private end(cause: Error | undefined): void {
    if (!this.isOpen) return
    this.isOpen = false
    if (cause !== undefined) this.channel.end.cutOff?.()
    this.promised.clear()
    if (!this.isLeaving) this.onGone(this)
    endpointOf(this.host.eventLoop).detach(this.channel)
    this.lifeline?.end(cause !== undefined)
    this.host.hideClosedListeners(this.channel.end)
    this.early.clear()
    this.connects.clear()
    this.toSend.clear()
    this.deliveries.scheduleRest()
    const code = cause === undefined ? 'ECONNRESET' : codeOfEnd(cause)
    this.tellGone(this.streams.all(), 0, cause, code)
  }

  /** The program may close streams that have not been told yet. */
  private tellGone(
    streams: readonly Stream[],
    from: number,
    cause: Error | undefined,
    code: StreamErrorCode,
  ): void {
    const { departures } = this.host
    for (let at = from; at < streams.length; at++) {
      const stream = streams[at] as Stream
      if (stream.state !== 'closed') stream.handleChannelGone(cause, code)
      if ((at + 1) % TOLD_AT_ONCE === 0 && !departures.hasTime())
        return departures.goOnLater(() => this.tellGone(streams, at + 1, cause, code))
    }
  }
}

/** True if the stream waits for the answer to its CONNECT. */
function isAsked(stream: Stream | undefined): stream is Stream {
  return stream !== undefined && stream.id > 0 && !stream.isAnswered
}

const endpoints = new WeakMap<EventLoop, ChannelGroup>()

/** The endpoint of all sockets whose turns that event loop runs, with the handlers of stream-layout.ts. */
function endpointOf(eventLoop: EventLoop): ChannelGroup {
  const known = endpoints.get(eventLoop)
  if (known !== undefined) return known
  const endpoint = new ChannelGroup({ eventLoop })
  endpoints.set(eventLoop, endpoint)
  const { handleData, handleConsumed, handleClose } = SocketChannel.prototype
  const { handleReadCompleted, handleWriteCompleted } = SocketChannel.prototype
  endpoint.handlers.setOneWay(DATA, handleData)
  endpoint.handlers.setOneWay(CONSUMED, handleConsumed)
  endpoint.handlers.setOneWay(CLOSE, handleClose)
  endpoint.handlers.setOneWay(SRC_AVAIL, SocketChannel.offerHandler(Stream.prototype.handleSourceAvailable))
  endpoint.handlers.setOneWay(RD_COMPL, handleReadCompleted)
  endpoint.handlers.setOneWay(SINK_AVAIL, SocketChannel.offerHandler(Stream.prototype.handleSinkAvailable))
  endpoint.handlers.setOneWay(WR_COMPL, handleWriteCompleted)
  endpoint.setHandler(CONNECT, message => requested(message)?.handleConnect(message))
  endpoint.setHandler(BOUND, message => requested(message)?.handleBound(message))
  endpoint.setHandler(ACCEPT, message => answered(message)?.handleAccept(message))
  endpoint.setHandler(REFUSE, message => answered(message)?.handleRefuse(message))
  return endpoint
}

/**
 * The channel that handles a request. A reply in its place ends the channel, as it cannot be answered; then undefined.
 */
function requested(message: Message): SocketChannel | undefined {
  return message.isRequest ? ownerOf(message) : refuseKind(message, 'reply')
}

/** The channel that handles a reply. A request in its place ends the channel; then undefined. */
function answered(message: Message): SocketChannel | undefined {
  return message.isRequest ? refuseKind(message, 'request') : ownerOf(message)
}

function refuseKind(message: Message, kind: string): undefined {
  const what = `handler ${message.handler} by a ${kind}`
  const error = new AmError('ERR_AM_PROTOCOL_VIOLATION', `the peer broke the socket protocol: ${what}`)
  ownerOf(message).handleBroken(error)
}

function ownerOf(message: Message): SocketChannel {
  return channelOf(message).owner as unknown as SocketChannel
}
