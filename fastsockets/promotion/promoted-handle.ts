/**
 * The handle of a connection that may move between TCP and a stream while it is in use (promotion, demotion). It is a fast handle
 * that has, below it, Node's own TCP handle of the same connection. There are two ways to it:
 *
 * - a socket that JavaScript reads starts with the TCP handle, and gets this one when it moves;
 * - a socket that native code will read (TLS, http2) has this one before: native code cannot change its handle.
 *
 * Each direction moves by itself, at a byte count. The first eight bytes that each side sends on the stream are the number of
 * bytes that it has given to TCP, or `ALL` if TCP carries that direction to its end. The receiver reads TCP up to that
 * count, and the stream from there on. So nothing is lost, doubled or reordered, whatever either side has under way.
 *
 *   client   CONNECT ............. ACCEPT: it sends its count, and writes to the stream
 *   server   ACCEPT ... the client's count: it sends its own, and writes to the stream
 *
 *   either   FIN with FLAG_BACK: its further bytes go to TCP. The other side answers in the same way; both then close the stream
 *
 * The server waits for the client's count, so that a client may still leave the connection on TCP: it closes the stream
 * without a count. An end of TCP is held while the peer may have moved; it may have closed already.
 * While both directions are on the stream, the TCP connection stays open and silent: its names and ports are those of the socket.
 */

import type { EarlySide } from '../handle/early-side.ts'
import { FastStreamHandle } from '../handle/fast-handle.ts'
import type { FastSocket, HandleHost, WriteCallback } from '../handle/fast-handle-contract.ts'
import {
  type ConnectedTcp,
  detachParser,
  isOverPath,
  movableTcp,
  shutdownBelow,
  writeAs,
  writeBelow,
} from '../handle/tcp-below.ts'
import { type HandleExchange, keepStreamState } from '../handle/tls-sockets.ts'
import { recordStay, recordTcpAgain } from '../handle/transport.ts'
import {
  type ConnectRequest,
  callIfFunction,
  copyOwner,
  type ReadListener,
  type SocketName,
} from '../host/node-internals.ts'
import { errorOfErrno, UV_EOF } from '../host/socket-errors.ts'
import { lastRead, reportRead, STOCK_READER } from '../host/stream-state.ts'
import { statusPage } from '../status/status-page.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import { COUNT_SIZE } from '../stream/stream-layout.ts'
import type { StreamErrorCode } from '../stream/stream-sink.ts'
import { CountWait } from './count-wait.ts'
import { askForTurn } from './next-turn.ts'
import { showPromoted } from './show-promoted.ts'

/** In place of a count: this direction stays on TCP. */
const ALL = 0xffff_ffff_ffff_ffffn

type Carrier = 'tcp' | 'stream'
/** `asked`: the client's CONNECT is out. `open`: there is a stream beside TCP. */
type Phase = 'tcp' | 'asked' | 'open'

/** `refusal`: of the server; undefined if it has not refused. */
type Settled = (isMoved: boolean, refusal: number | undefined) => void

/** The client's side of a handle that starts on TCP, or is back there. */
export interface Starter {
  /** Whether a connection to this address, which begins now, may move. */
  mayMove(handle: PromotedHandle, address: string, port: number, family: 4 | 6): boolean
  /** Whether that holds when it is connected. */
  mayStillMove(handle: PromotedHandle): boolean
  /** So many bytes were written over TCP. True if the connection may move in the next turns. */
  handleTcpWrite(handle: PromotedHandle, length: number): boolean
}

export class PromotedHandle extends FastStreamHandle {
  readonly tcp: ConnectedTcp
  private readonly exchange: HandleExchange
  private readonly starter: Starter | undefined
  /** This handle is in the socket. */
  private isPlaced: boolean
  private phase: Phase = 'tcp'
  private outgoing: Carrier = 'tcp'
  private incoming: Carrier = 'tcp'
  /** How TCP's bytes reach a socket that has the TCP handle: Node's own reader, or what the program has put there. */
  private tcpReader: ReadListener | undefined
  /** Counts of the TCP handle that are in the counts of this one. */
  private tcpRead = 0
  private tcpWritten = 0
  /** The end was given to TCP. */
  private hasShutTcp = false
  private resetsTcp = false
  private isHandedBack = false

  // Of one move, until the connection is back on TCP.
  /** The peer's count: so many of its bytes come by TCP. Undefined until it is known. */
  private expected: number | undefined
  private readonly countBytes = Buffer.alloc(COUNT_SIZE)
  private countLength = 0
  /** TCP has ended while it was not known whether the peer has moved. */
  private hasHeldEnd = false
  private readonly wait: CountWait
  /** Called once the client's request has an answer. */
  private onSettled: Settled | undefined

  // Demotion.
  /** As soon as the client's count is there. */
  private wantsBack = false
  /** Our direction has left the stream, or will once the stream has sent all of it. */
  private isReturning = false
  private hasSentBack = false
  /** Nothing of our direction is left in the stream. */
  private isOutBack = false
  private isInBack = false
  private onBack: ((isBack: boolean) => void)[] = []

  /** `socket`: it has the TCP handle now, or `early` in place of it. Without one this handle is in place from the start. */
  constructor(
    tcp: ConnectedTcp,
    exchange: HandleExchange,
    socket: FastSocket | undefined,
    starter?: Starter,
    host?: HandleHost,
    early?: EarlySide,
  ) {
    super(undefined, isOverPath(tcp), undefined, host, early?.handle)
    this.socket = socket
    this.tcp = tcp
    this.exchange = exchange
    this.wait = new CountWait(tcp, this.processHost)
    this.starter = starter
    this.isPlaced = socket === undefined || early !== undefined
    if (early !== undefined) this.replace(early)
    if (this.isPlaced) tcp.onread = this.readsTcp
    else this.tcpReader = tcp.onread as ReadListener
  }

  private readonly readsTcp: ReadListener = arrayBuffer => this.readTcp(arrayBuffer)

  override get isOnPath(): boolean {
    return isOverPath(this.tcp)
  }

  /** Nothing is on a stream, or on its way there. */
  override get isOnTcp(): boolean {
    return this.phase !== 'open'
  }

  private get isWhollyOnTcp(): boolean {
    return this.phase === 'tcp' && this.outgoing === 'tcp' && this.incoming === 'tcp'
  }

  /** True if a request to move it may be made, or answered. */
  get mayMove(): boolean {
    return this.isWhollyOnTcp && !this.isClosed && !this.hasShutTcp && this.socket?.connecting === false
  }

  // The connect of a handle that is in place from the start.

  override connect(request: ConnectRequest, address: string, port: number): number {
    return this.connectBelow(request, address, port, 4)
  }

  override connect6(request: ConnectRequest, address: string, port: number): number {
    return this.connectBelow(request, address, port, 6)
  }

  private connectBelow(request: ConnectRequest, address: string, port: number, family: 4 | 6): number {
    const { tcp, starter } = this
    if (starter?.mayMove(this, address, port, family) === true) {
      this.claim()
      const { oncomplete } = request
      request.oncomplete = (status, _handle, ...rest) => {
        const staysThere = status === 0 && !this.isClosed && !starter.mayStillMove(this)
        if (staysThere) this.handBack()
        callIfFunction(oncomplete, request, [status, staysThere ? tcp : this.handle, ...rest])
      }
    } else this.handBack()
    return family === 6 ? tcp.connect6(request, address, port) : tcp.connect(request, address, port)
  }

  /** Gives the socket the TCP handle, for good. Not once native code reads, or bytes were on a stream and wait. */
  private handBack(): void {
    const socket = this.socket as FastSocket
    const { tcp, onread } = this
    const { reading } = tcp
    this.isHandedBack = true
    if (socket.connecting) this.successor = tcp
    else socket._handle = null
    keepStreamState(socket, () => this.exchange(socket, tcp))
    tcp.reading = reading
    if (onread !== undefined && onread.name !== STOCK_READER) tcp.onread = onread
    if (this.isUnreferenced) tcp.unref()
    if (!this.isClosed) this.close()
  }

  /** For the case that the socket is sent to another process: true if it now has the TCP handle. */
  tryHandBack(): boolean {
    if (!this.isWhollyOnTcp || this.isClosed || this.isNative || this.feedCount > 0 || this.hasUnread)
      return false
    this.handBack()
    return true
  }

  /** The TCP handle belongs to the same socket: Node looks for the owner in the callbacks of writes, and lists it. */
  private claim(): void {
    copyOwner(this.handle, this.tcp)
  }

  // The handshake.

  /** Client: the CONNECT is out. `onSettled` is told whether the socket has moved. */
  ask(stream: SocketStream, onSettled: Settled): void {
    this.onSettled = onSettled
    this.phase = 'asked'
    this.stream = stream
    if (!this.isPlaced) this.watchTcp()
  }

  /** Server: the connection is found; the ACCEPT is out. */
  accept(stream: SocketStream): void {
    if (!this.isPlaced) {
      this.watchTcp()
      this.putInPlace()
    }
    this.phase = 'open'
    this.adopt(stream)
  }

  /** Client: the ACCEPT has come. */
  override handleConnected(): void {
    const socket = this.socket as FastSocket
    if (this.isClosed || (!this.isPlaced && movableTcp(socket, this.readsTcp) !== this.tcp))
      return this.leave()
    const stream = this.stream as SocketStream
    if (!this.isPlaced) this.putInPlace()
    this.phase = 'open'
    this.adopt(stream)
    this.moveOut()
    this.record()
    this.settle(true)
  }

  override handleAnswered(): void {}

  override handleRefused(refusal: number | undefined): void {
    this.leave(refusal)
  }

  /** The socket stays on TCP, with the handle that it has. */
  private leave(refusal?: number): void {
    const { stream, tcp } = this
    this.phase = 'tcp'
    this.dropStream()
    if (!this.isPlaced && tcp.onread === this.readsTcp) tcp.onread = this.tcpReader
    stream?.close(false)
    this.settle(false, refusal)
  }

  private settle(isMoved: boolean, refusal?: number): void {
    const tell = this.onSettled
    this.onSettled = undefined
    tell?.(isMoved, refusal)
  }

  private watchTcp(): void {
    detachParser(this.socket as FastSocket, this.tcp)
    this.tcp.onread = this.readsTcp
  }

  /** Puts this handle into the socket; the TCP handle stays open below it. */
  private putInPlace(): void {
    const socket = this.socket as FastSocket
    const { tcp } = this
    this.isPlaced = true
    this.readCount = this.tcpRead = tcp.bytesRead
    this.writtenCount = this.tcpWritten = tcp.bytesWritten
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

  /** Native code is about to read. */
  placeForNative(): void {
    this.watchTcp()
    this.putInPlace()
    this.noteNative()
  }

  /** Native code reads the handle already. */
  private replace({ tcp, onread, upper, isReading, hasShut }: EarlySide): void {
    this.readCount = this.tcpRead = tcp.bytesRead
    this.writtenCount = this.tcpWritten = tcp.bytesWritten
    this.onread = onread
    this.upper = upper
    this.wantsData = isReading
    this.hasShutTcp = hasShut
    this.isUnreferenced = !tcp.hasRef()
    this.noteNative()
  }

  // The outgoing direction.

  /** All further writes go to the stream, unless the end is out, or about to be. */
  private moveOut(): void {
    const { socket } = this
    const stream = this.stream as SocketStream
    const hasEnded =
      this.hasShutTcp || (socket !== undefined && (socket.destroyed || socket._writableState.finalCalled))
    const count = Buffer.alloc(COUNT_SIZE)
    count.writeBigUInt64LE(hasEnded ? ALL : BigInt(this.tcp.bytesWritten))
    if (!hasEnded) this.outgoing = 'stream'
    stream.write([count])
  }

  override writeFromSocket(
    socket: FastSocket,
    writev: boolean,
    data: unknown,
    encoding: string,
    callback: WriteCallback,
  ): void {
    if (this.outgoing === 'stream') return super.writeFromSocket(socket, writev, data, encoding, callback)
    this.claim()
    writeAs(this.tcp, socket, writev, data, encoding, callback)
    const length = this.noteWritten()
    if (this.starter?.handleTcpWrite(this, length) === true) askForTurn(socket, length)
  }

  override handleNativeWrite(request: { readonly oncomplete?: unknown }, buffers: Buffer[]): number {
    if (this.outgoing === 'stream') return super.handleNativeWrite(request, buffers)
    const isAtOnce = this.completesAtOnce(request)
    let length = 0
    const status = writeBelow(this.tcp, buffers, (written, isInCall) => {
      if (!isInCall) return this.completeWrite(request, written)
      length = this.noteWritten()
      this.completeWritten(request, isAtOnce)
    })
    this.starter?.handleTcpWrite(this, length + this.noteWritten())
    return status
  }

  private noteWritten(): number {
    const { bytesWritten } = this.tcp
    const length = bytesWritten - this.tcpWritten
    this.tcpWritten = bytesWritten
    this.writtenCount += length
    return length
  }

  override shutdown(request: object): number {
    if (this.shutsStream()) return super.shutdown(request)
    return this.tcp.shutdown(request)
  }

  override handleNativeShutdown(request: object): number {
    if (this.shutsStream()) return super.handleNativeShutdown(request)
    this.beginNativeShutdown(request)
    return shutdownBelow(this.tcp, () => this.finishNativeShutdown(0))
  }

  /**
   * True if this direction ends on the stream. The kernel knows it, too: what fails later on TCP has the error that it has over TCP alone,
   * and a connection that goes back finds its end there.
   */
  private shutsStream(): boolean {
    this.hasShutTcp = true
    if (this.outgoing === 'stream') shutdownBelow(this.tcp, () => {})
    return this.outgoing === 'stream'
  }

  override get writeQueueSize(): number {
    return this.tcp.writeQueueSize + super.writeQueueSize
  }

  // The incoming direction.

  /** What TCP brings, while it may bring something. */
  private readTcp(arrayBuffer: ArrayBuffer | undefined): unknown {
    if (this.incoming === 'stream') return undefined
    const isEnd = arrayBuffer === undefined && lastRead()?.result === UV_EOF
    // The server moves only after the client has.
    if (isEnd && this.phase === 'asked') this.leave()
    if (isEnd && this.phase === 'open' && !this.isInBack && this.expected !== Number.POSITIVE_INFINITY) {
      this.hasHeldEnd = true
      return this.look()
    }
    const next = this.passOn(arrayBuffer)
    if (this.phase === 'open') this.look()
    return next
  }

  /** As Node's TCP handle does, for the socket or for native code above it. */
  private passOn(arrayBuffer: ArrayBuffer | undefined): unknown {
    if (!this.isPlaced) return this.tcpReader?.call(this.tcp, arrayBuffer)
    const { bytesRead } = this.tcp
    const length = bytesRead - this.tcpRead
    this.tcpRead = bytesRead
    if (this.isNative && arrayBuffer !== undefined) {
      const { result, offset } = lastRead() ?? { result: arrayBuffer.byteLength, offset: 0 }
      super.handleData(Buffer.from(arrayBuffer, offset, result))
      return undefined
    }
    if (this.isNative) return this.endNative(lastRead()?.result ?? UV_EOF)
    this.readCount += length
    return this.onread?.call(this.handle, arrayBuffer)
  }

  private endNative(status: number): void {
    if (status === UV_EOF) return this.feedEnd()
    const error = errorOfErrno(status, 'read')
    this.finishNativeWrite(status)
    this.run(() => this.fail('read', status, error))
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
    const { stream } = this
    if (this.countLength < COUNT_SIZE) return !this.isClosed
    // The end of the stream is no news to the program then.
    if (stream?.goesBack === true && stream.waitingLength + stream.queuedCount === 0) return !this.isClosed
    return this.incoming === 'stream' && super.isReading
  }

  get hasEnded(): boolean {
    return this.incoming === 'tcp' && this.socket?._readableState.ended === true
  }

  private handleCount(count: bigint): void {
    this.expected = count === ALL ? Number.POSITIVE_INFINITY : Number(count)
    if (this.stream?.role === 'server') this.handleMoved()
    this.look()
    this.handleArrival()
  }

  /** Server: the client has moved. */
  protected handleMoved(): void {
    this.moveOut()
    if (this.socket !== undefined) this.record()
  }

  /** Whether TCP has brought all of its part. */
  private look(): void {
    const { expected, tcp } = this
    if (this.incoming === 'stream' || this.isClosed || this.isInBack) return
    if (expected === undefined) return this.lookLater()
    if (tcp.bytesRead === expected) return this.moveIn()
    // The peer breaks the rules of this protocol.
    if (tcp.bytesRead > expected) return super.handleError('ECONNRESET', 'read', undefined)
    if (this.hasHeldEnd) {
      // Short of the count, the peer has died or dropped what libuv had queued: TCP reports no more than the end.
      this.expected = Number.POSITIVE_INFINITY
      return this.tellTcpEnd()
    }
    if (expected !== Number.POSITIVE_INFINITY) this.lookLater()
  }

  /** Gives up after a while in which the program reads and TCP brings nothing of what the peer has announced. */
  private lookLater(): void {
    if (this.expected === undefined && !this.hasHeldEnd) return
    this.wait.start(isIdle => {
      if (this.isClosed || this.phase !== 'open' || this.incoming === 'stream' || this.isInBack) return
      if (isIdle && (this.hasHeldEnd || this.tcp.reading)) super.handleError('ECONNRESET', 'read', undefined)
      else this.look()
    })
  }

  private moveIn(): void {
    this.wait.stop()
    this.incoming = 'stream'
    this.hasHeldEnd = false
    this.tcp.reading = false
    this.tcp.readStop()
    // What came with the count is only then put where it waits.
    this.stream?.scheduleDelivery()
    this.stream?.noteMoved()
  }

  private tellTcpEnd(): void {
    this.wait.stop()
    this.hasHeldEnd = false
    this.run(() => {
      if (this.isNative) this.feedEnd()
      else if (this.onread !== undefined) reportRead(this.handle, this.onread, UV_EOF)
    })
  }

  override readStart(): number {
    const status = super.readStart()
    return this.incoming === 'stream' || this.isClosed ? status : this.readTcpOn()
  }

  private readTcpOn(): number {
    this.claim()
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

  // The way back.

  /** Moves both directions to TCP. `onBack` is told whether they are there; false if the connection has ended instead. */
  demote(onBack: (isBack: boolean) => void): void {
    if (this.phase === 'asked') this.leave()
    if (this.phase === 'tcp') return onBack(!this.isClosed)
    this.onBack.push(onBack)
    this.goBack(this.stream as SocketStream)
  }

  private goBack(stream: SocketStream): void {
    this.returnOut()
    this.endMove()
    // It will never say that it has moved.
    if (this.wantsBack && stream.peerClosed) this.settleBack(false)
  }

  /** Our further bytes go to TCP; the stream says so behind all that it has. */
  private returnOut(): void {
    const stream = this.stream as SocketStream
    if (this.isReturning || this.isClosed) return
    this.wantsBack = !this.hasMoved(stream)
    if (this.wantsBack) return
    this.isReturning = true
    if (stream.isFinished) {
      this.isOutBack = stream.unsentLength === 0
      stream.askBack()
      return
    }
    this.outgoing = 'tcp'
    this.hasSentBack = true
    this.isOutBack = stream.shutdown(true)
  }

  /** Both directions have left TCP, or stay on it: its next bytes are read only once the stream has ended. */
  private hasMoved(stream: SocketStream): boolean {
    const isInMoved =
      this.incoming === 'stream' || this.expected === Number.POSITIVE_INFINITY || this.isInBack
    const isOutMoved = this.outgoing === 'tcp' || stream.peerHasMoved || stream.isFinished
    return isInMoved && isOutMoved && this.countLength === COUNT_SIZE
  }

  /** In each turn with news. */
  handleArrival(): void {
    const { stream } = this
    if (stream !== undefined && (this.wantsBack || stream.asksBack)) this.goBack(stream)
  }

  override handleShutdown(): void {
    if (!this.hasSentBack) super.handleShutdown()
    if (!this.isReturning) return
    this.isOutBack = true
    this.endMove()
  }

  /** The peer's further bytes come by TCP. */
  private returnIn(): void {
    this.wait.stop()
    this.isInBack = true
    this.incoming = 'tcp'
    this.returnOut()
    this.endMove()
    if (this.hasHeldEnd) this.tellTcpEnd()
    else if (this.wantsData) this.readTcpOn()
  }

  /** Closes the stream once nothing of either direction is in it. */
  private endMove(): void {
    const isInBack = this.isInBack || this.expected === Number.POSITIVE_INFINITY
    if (!this.isReturning || !this.isOutBack || !isInBack || this.isClosed) return
    const stream = this.stream as SocketStream
    this.dropStream()
    stream.close(false)
    this.phase = 'tcp'
    this.expected = undefined
    this.countLength = 0
    this.isReturning = this.hasSentBack = this.isOutBack = this.isInBack = this.wantsBack = false
    statusPage().countDemoted()
    if (this.socket !== undefined) recordTcpAgain(this.socket, stream.role)
    this.settleBack(true)
  }

  private settleBack(isBack: boolean): void {
    for (const tell of this.onBack.splice(0)) tell(isBack)
  }

  /** The stream has ended. Without a count the peer has not moved, and never will. */
  override handleEnd(): void {
    if (this.countLength < COUNT_SIZE) return this.stayIn()
    if (this.stream?.goesBack === true) return this.returnIn()
    // Also for a direction that stays on TCP.
    if (this.incoming === 'tcp') return
    this.isInBack = true
    super.handleEnd()
    this.endMove()
  }

  override handleError(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
    if (this.countLength < COUNT_SIZE && this.outgoing === 'tcp') return this.stayIn()
    super.handleError(code, syscall, cause)
  }

  /** The peer's direction stays on TCP; so does ours, unless it has moved. */
  protected stayIn(): void {
    if (this.hasHeldEnd) this.tellTcpEnd()
    if (this.outgoing === 'stream') {
      this.countLength = COUNT_SIZE
      this.expected = Number.POSITIVE_INFINITY
      return
    }
    const { stream } = this
    this.dropStream()
    stream?.close(false)
    this.phase = 'tcp'
    this.countLength = 0
    this.wantsBack = false
    if (this.socket !== undefined) recordStay(this.socket)
    this.settle(false)
    this.settleBack(true)
  }

  /** Both ends know it now. */
  protected record(): void {
    const { socket, stream, readCount, writtenCount } = this
    showPromoted(socket as FastSocket, stream as SocketStream, readCount, writtenCount)
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
    if (!isFirst || this.isHandedBack) return
    this.wait.stop()
    this.settle(false)
    // libuv refuses a reset while a shutdown waits.
    if (!this.resetsTcp || this.tcp.reset() !== 0) this.tcp.close()
    this.settleBack(false)
  }

  // What the kernel knows of the connection.

  override hasBegun(): boolean {
    return true
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

  override setNoDelay(isOn: boolean): number {
    return this.tcp.setNoDelay(isOn)
  }

  override setKeepAlive(isOn: boolean, delayS: number): number {
    return this.tcp.setKeepAlive(isOn, delayS)
  }
}
