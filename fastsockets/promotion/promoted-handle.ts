/**
 * The handle of a socket that began on TCP and moves to a stream while it is in use (promotion). It is a fast handle that
 * has, below it, Node's own TCP handle of the same connection.
 *
 * Each direction moves by itself, at a byte count. The first eight bytes that each side sends on the stream are the number of
 * bytes that it has given to TCP, or `ALL` if TCP carries that direction to its end. The receiver reads TCP up to that
 * count, and the stream from there on. So nothing is lost, doubled or reordered, whatever either side has under way.
 *
 *   client   CONNECT ............. ACCEPT: its handle is put in place; it sends its count, and writes to the stream
 *   server   ACCEPT: its handle is put in place ... the client's count: it sends its own, and writes to the stream
 *
 * The server waits for the client's count, so that a client may still leave the connection on TCP: it closes the stream
 * without a count. An end of TCP is held while it is not known whether the peer has moved; it may have closed already.
 * After both directions have moved, the TCP connection stays open and silent: its names and ports are those of the socket.
 */

import { FastStreamHandle } from '../handle/fast-handle.ts'
import type { FastSocket, WriteCallback } from '../handle/fast-handle-contract.ts'
import { type ConnectedTcp, detachParser, movableTcp, writeAs, writeBelow } from '../handle/tcp-below.ts'
import { type HandleExchange, keepStreamState } from '../handle/tls-sockets.ts'
import { recordFast, recordStay } from '../handle/transport.ts'
import type { ReadListener, SocketName } from '../host/node-internals.ts'
import { UV_EOF } from '../host/socket-errors.ts'
import { lastRead, reportRead } from '../host/stream-state.ts'
import { EVENTS, publishEvent } from '../status/events.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import { endsOf } from '../stream/stream-addresses.ts'
import type { StreamErrorCode } from '../stream/stream-sink.ts'

const COUNT_SIZE = 8
/** In place of a count: this direction stays on TCP. */
const ALL = 0xffff_ffff_ffff_ffffn

type Carrier = 'tcp' | 'stream'
/** `asked`: the client has asked, and its socket still has the TCP handle. */
type State = 'asked' | 'placed' | 'left'

export class PromotedHandle extends FastStreamHandle {
  private readonly tcp: ConnectedTcp
  private readonly exchange: HandleExchange
  protected promotion: State = 'asked'
  private outgoing: Carrier = 'tcp'
  private incoming: Carrier = 'tcp'
  /** How TCP's bytes reach the socket: Node's own reader, or what the program has put there. */
  private tcpReader: ReadListener
  /** The peer's count: so many of its bytes come by TCP. Undefined until it is known. */
  private expected: number | undefined
  private readonly countBytes = Buffer.alloc(COUNT_SIZE)
  private countLength = 0
  /** TCP has ended while it was not known whether the peer has moved. */
  private hasHeldEnd = false
  private resetsTcp = false
  /** Called once the client's request has an answer. */
  private onSettled: ((isMoved: boolean) => void) | undefined

  constructor(socket: FastSocket | undefined, tcp: ConnectedTcp, exchange: HandleExchange) {
    super(undefined, false)
    this.socket = socket
    this.tcp = tcp
    this.exchange = exchange
    this.tcpReader = tcp.onread as ReadListener
  }

  private readonly readsTcp: ReadListener = arrayBuffer => this.readTcp(arrayBuffer)

  // The handshake.

  /** Client: the CONNECT is out. `onSettled` is told whether the socket has moved. */
  ask(stream: SocketStream, onSettled: (isMoved: boolean) => void): void {
    this.onSettled = onSettled
    this.stream = stream
    this.watchTcp()
  }

  /** Server: the connection is found; the ACCEPT is out. */
  accept(stream: SocketStream): void {
    this.watchTcp()
    this.putInPlace()
    this.adopt(stream)
  }

  /** Client: the ACCEPT has come. */
  override handleConnected(): void {
    const socket = this.socket as FastSocket
    if (movableTcp(socket, this.readsTcp) !== this.tcp) return this.leave()
    const stream = this.stream as SocketStream
    this.putInPlace()
    this.adopt(stream)
    this.moveOut()
    this.record()
    this.settle(true)
  }

  override handleAnswered(): void {}

  override handleRefused(): void {
    this.leave()
  }

  /** The socket stays on TCP, with the handle that it has. */
  private leave(): void {
    const { stream } = this
    this.promotion = 'left'
    this.stream = undefined
    this.tcp.onread = this.tcpReader
    stream?.close(false)
    this.settle(false)
    if (this.hasHeldEnd) this.tellTcpEnd()
  }

  private settle(isMoved: boolean): void {
    this.onSettled?.(isMoved)
    this.onSettled = undefined
  }

  /** Puts this handle into the socket; the TCP handle stays open below it. */
  private putInPlace(): void {
    const socket = this.socket as FastSocket
    const { tcp } = this
    this.promotion = 'placed'
    this.readCount = tcp.bytesRead
    this.writtenCount = tcp.bytesWritten
    const isReading = tcp.reading
    const isReferenced = tcp.hasRef()
    socket._handle = null
    keepStreamState(socket, () => this.exchange(socket, this.handle))
    if (this.tcpReader !== this.onread) this.onread = this.tcpReader
    this.socket = socket
    this.handle.reading = isReading
    this.wantsData = isReading
    if (!isReferenced) this.unref()
  }

  // The outgoing direction.

  /** All further writes go to the stream, unless the end is out, or about to be. */
  private moveOut(): void {
    const { socket } = this
    const stream = this.stream as SocketStream
    const hasEnded = socket !== undefined && (socket.destroyed || socket._writableState.finalCalled)
    const count = Buffer.alloc(COUNT_SIZE)
    count.writeBigUInt64LE(hasEnded ? ALL : BigInt(this.tcp.bytesWritten))
    if (!hasEnded) this.outgoing = 'stream'
    stream.writeOne(count)
  }

  override writeFromSocket(
    socket: FastSocket,
    writev: boolean,
    data: unknown,
    encoding: string,
    callback: WriteCallback,
  ): void {
    if (this.outgoing === 'stream') return super.writeFromSocket(socket, writev, data, encoding, callback)
    writeAs(this.tcp, socket, writev, data, encoding, callback)
    this.writtenCount = this.tcp.bytesWritten
  }

  override handleNativeWrite(request: object, buffers: Buffer[]): number {
    if (this.outgoing === 'stream') return super.handleNativeWrite(request, buffers)
    const status = writeBelow(this.tcp, buffers, written => this.completeWrite(request, written))
    this.writtenCount = this.tcp.bytesWritten
    return status
  }

  override shutdown(request: object): number {
    return this.outgoing === 'tcp' ? this.tcp.shutdown(request) : super.shutdown(request)
  }

  override get writeQueueSize(): number {
    return this.tcp.writeQueueSize + super.writeQueueSize
  }

  // The incoming direction.

  protected watchTcp(): void {
    if (this.socket !== undefined) detachParser(this.socket, this.tcp)
    this.tcp.onread = this.readsTcp
  }

  /** What TCP brings, while it may bring something. */
  private readTcp(arrayBuffer: ArrayBuffer | undefined): unknown {
    if (this.incoming === 'stream') return undefined
    if (arrayBuffer === undefined && lastRead()?.result === UV_EOF && this.mayHaveMoved) {
      this.hasHeldEnd = true
      // With a count known, TCP has ended short of it.
      if (this.promotion === 'placed') this.look()
      return undefined
    }
    const next = this.passOn(arrayBuffer)
    if (this.promotion === 'placed') this.look()
    return next
  }

  /** The peer may have sent more by the stream than is known yet. */
  private get mayHaveMoved(): boolean {
    return this.promotion !== 'left' && this.expected !== Number.POSITIVE_INFINITY
  }

  /** As Node's TCP handle does, for the socket or for native code above it. */
  private passOn(arrayBuffer: ArrayBuffer | undefined): unknown {
    if (this.promotion !== 'placed') return this.tcpReader.call(this.tcp, arrayBuffer)
    if (this.readsLikeStream && arrayBuffer !== undefined) {
      const { result, offset } = lastRead() ?? { result: arrayBuffer.byteLength, offset: 0 }
      return this.feed(Buffer.from(arrayBuffer, offset, result))
    }
    if (this.readsLikeStream && lastRead()?.result === UV_EOF) return this.feedEnd()
    const next = this.tcpReader.call(this.tcp, arrayBuffer)
    this.readCount = this.tcp.bytesRead
    if (!this.tcp.reading && !this.isClosed) {
      this.handle.reading = false
      super.readStop()
    }
    return next
  }

  /** Whether what TCP brings goes the way of what the stream brings, and not to Node's own reader. */
  protected get readsLikeStream(): boolean {
    return this.isNative
  }

  private feed(bytes: Buffer): undefined {
    super.handleData(bytes)
    return undefined
  }

  /** Takes the peer's count first; what is behind it waits in the stream until TCP has brought all of its part. */
  override handleData(bytes: Buffer): number {
    if (this.countLength === COUNT_SIZE) return super.handleData(bytes)
    const taken = Math.min(COUNT_SIZE - this.countLength, bytes.length)
    this.countBytes.set(bytes.subarray(0, taken), this.countLength)
    this.countLength += taken
    if (this.countLength === COUNT_SIZE) this.handleCount(this.countBytes.readBigUInt64LE())
    return taken
  }

  override get isReading(): boolean {
    if (this.countLength < COUNT_SIZE) return !this.isClosed
    return this.incoming === 'stream' && super.isReading
  }

  private handleCount(count: bigint): void {
    this.expected = count === ALL ? Number.POSITIVE_INFINITY : Number(count)
    if (this.stream?.role === 'server') this.handleMoved()
    this.look()
  }

  /** Server: the client has moved. */
  protected handleMoved(): void {
    this.moveOut()
    if (this.socket !== undefined) this.record()
  }

  /** Whether TCP has brought all of its part. */
  private look(): void {
    const { expected, tcp } = this
    if (expected === undefined || this.incoming === 'stream' || this.isClosed) return
    if (tcp.bytesRead === expected) return this.moveIn()
    if (!this.hasHeldEnd) {
      // The peer breaks the rules of this protocol.
      if (tcp.bytesRead > expected) super.handleError('ECONNRESET', 'read', undefined)
      return
    }
    if (expected === Number.POSITIVE_INFINITY) this.tellTcpEnd()
    else super.handleError('ECONNRESET', 'read', undefined)
  }

  private moveIn(): void {
    this.incoming = 'stream'
    this.hasHeldEnd = false
    this.tcp.reading = false
    this.tcp.readStop()
    this.readCount = this.tcp.bytesRead
    // What came with the count is only then put where it waits.
    this.stream?.scheduleDelivery()
  }

  private tellTcpEnd(): void {
    this.hasHeldEnd = false
    this.run(() => {
      if (this.promotion === 'placed' && this.readsLikeStream) this.feedEnd()
      else reportRead(this.tcp, this.tcpReader, UV_EOF)
    })
  }

  override readStart(): number {
    const status = super.readStart()
    if (this.incoming === 'stream' || this.isClosed) return status
    this.tcp.reading = true
    return this.tcp.readStart()
  }

  override readStop(): number {
    if (this.incoming === 'tcp' && !this.isClosed) {
      this.tcp.reading = false
      this.tcp.readStop()
    }
    return super.readStop()
  }

  // The end.

  /** The stream has ended. Without a count the peer has not moved, and never will. */
  override handleEnd(): void {
    if (this.countLength === COUNT_SIZE) return super.handleEnd()
    this.stayIn()
  }

  override handleError(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
    if (this.countLength < COUNT_SIZE && this.outgoing === 'tcp') return this.stayIn()
    super.handleError(code, syscall, cause)
  }

  protected stayIn(): void {
    this.countLength = COUNT_SIZE
    this.expected = Number.POSITIVE_INFINITY
    if (this.hasHeldEnd) this.tellTcpEnd()
    if (this.outgoing === 'tcp') recordStay(this.socket as FastSocket)
  }

  /** Both ends know it now. */
  protected record(): void {
    const socket = this.socket as FastSocket
    const stream = this.stream as SocketStream
    const { transport } = stream.channel
    recordFast(socket, transport)
    if (!EVENTS.promoted.hasSubscribers) return
    const { readCount: bytesIn, writtenCount: bytesOut } = this
    publishEvent(EVENTS.promoted, {
      socket,
      transport,
      role: stream.role,
      ...endsOf(stream),
      bytesIn,
      bytesOut,
    })
  }

  /** Bytes that have come by TCP and were not read make a close a reset, as in TCP. */
  override get hasUnread(): boolean {
    const { expected } = this
    const isTcpUnread = expected !== undefined && expected !== Number.POSITIVE_INFINITY
    return super.hasUnread || (this.incoming === 'tcp' && isTcpUnread && this.tcp.bytesRead < expected)
  }

  override reset(callback: () => void): number {
    this.resetsTcp = true
    return super.reset(callback)
  }

  override close(callback?: () => void): void {
    const isFirst = !this.isClosed
    super.close(callback)
    if (!isFirst) return
    if (this.resetsTcp) this.tcp.reset()
    else this.tcp.close()
  }

  override ref(): void {
    super.ref()
    this.tcp.ref()
  }

  override unref(): void {
    super.unref()
    this.tcp.unref()
  }

  override getsockname(out: SocketName): number {
    return this.tcp.getsockname(out)
  }

  override getpeername(out: SocketName): number {
    return this.tcp.getpeername(out)
  }
}
