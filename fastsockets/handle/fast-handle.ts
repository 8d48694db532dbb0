/**
 * The handle under a fast `net.Socket`: a native stream (JSStream) whose bytes travel over a `Stream`.
 *
 * While JavaScript owns the socket, no native code is involved: writes come in through `_writeGeneric` (install.ts) and
 * data goes out through `socket.push`. What native code sees is in native-side.ts.
 */
import { AsyncResource } from 'node:async_hooks'
import { realClock } from '../../nic/clock.ts'
import { runInClosingPhase } from '../host/closing-phase.ts'
import { runAfterIo } from '../host/io-turns.ts'
import {
  type ConnectRequest,
  callIfFunction,
  complete,
  isUncaughtHandled,
  type NodeInternals,
  nodeInternals,
  noteQueueSize,
  type SocketName,
  type TcpHandle,
} from '../host/node-internals.ts'
import { REPORTS_CANCELED_WRITES } from '../host/node-versions.ts'
import {
  errnoOf,
  systemError,
  UV_EALREADY,
  UV_EBADF,
  UV_ECANCELED,
  UV_EINVAL,
  UV_EISCONN,
} from '../host/socket-errors.ts'
import { noteLastWrite, reportToReader } from '../host/stream-state.ts'
import { guard } from '../host/thrown-errors.ts'
import { type Family, UNIX } from '../host/unix-paths.ts'
import { isCountedLate, lengthOf, toBytes, toChunks, type WrittenChunk } from '../host/written-chunks.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import { clientName, serverName } from '../stream/stream-addresses.ts'
import type { StreamErrorCode } from '../stream/stream-sink.ts'
import type {
  Dialer,
  FastHandle,
  FastHandleClass,
  FastSocket,
  HandleHost,
  WriteCallback,
} from './fast-handle-contract.ts'
import { HandleScope, Waiting } from './handle-scopes.ts'
import { NativeSide } from './native-side.ts'
import {
  createHandle,
  type HandleSide,
  prepareHandles,
  type ShownHandle,
  takeHandle,
} from './socket-handle.ts'

/** The lowest bits of a type of service. */
const ECN_MASK = 3

/** The class; undefined if this Node lacks the native stream class. */
export function fastHandleClass(): FastHandleClass | undefined {
  const internals = nodeInternals()
  if (internals === undefined) return undefined
  prepareHandles(internals)
  createTcp = internals.createTcp
  return FastStreamHandle
}

export { fastOf } from './socket-handle.ts'

export function isFastHandle(sink: unknown): sink is FastHandle {
  return sink instanceof FastStreamHandle
}

let createTcp: NodeInternals['createTcp']

const threadHost: HandleHost = {
  clock: realClock,
  runInClosingPhase: action => runInClosingPhase(createTcp, action),
}

export class FastStreamHandle extends NativeSide implements FastHandle, HandleSide {
  readonly handle: ShownHandle
  host: string | undefined
  successor: TcpHandle | undefined
  attempt: object | undefined
  upper: FastSocket | undefined
  isUnreferenced = false

  protected readonly dialer: Dialer | undefined
  protected readonly processHost: HandleHost
  private readonly scopeType: string
  protected scope: AsyncResource
  private request: ConnectRequest | undefined
  private isForPath = false
  protected wantsData = false
  private countsAsAlive = false
  private typeOfService = 0
  private pendingWrite: Waiting | undefined
  private pendingShutdown: Waiting | undefined

  /** `handle`: one that has another side. */
  constructor(
    dialer: Dialer | undefined,
    isPipe: boolean,
    causeId?: number,
    host = threadHost,
    handle?: ShownHandle,
  ) {
    super()
    this.dialer = dialer
    this.processHost = host
    this.scopeType = isPipe ? 'PIPEWRAP' : 'TCPWRAP'
    this.scope = new HandleScope(this, this.scopeType, causeId)
    this.handle = handle === undefined ? createHandle(this, isPipe) : takeHandle(this, handle)
  }

  // What net.js, tls and http2 see.

  get writeQueueSize(): number {
    const { stream } = this
    return stream?.isWaiting === true ? stream.unsentLength : 0
  }

  /** Connects to a unix path if there is no port. */
  connect(request: ConnectRequest, address: string, port?: number): number {
    if (port === undefined) return this.begin(request, address, 0, UNIX)
    return this.begin(request, address, port, 4)
  }

  connect6(request: ConnectRequest, address: string, port: number): number {
    return this.begin(request, address, port, 6)
  }

  bind(address: string, port: number): number {
    return this.isBindable ? (this.dialer as Dialer).demoteToBind(this).bind(address, port) : UV_EINVAL
  }

  bind6(address: string, port: number, flags?: number): number {
    return this.isBindable
      ? (this.dialer as Dialer).demoteToBind(this).bind6(address, port, flags)
      : UV_EINVAL
  }

  /** True if bind(2) may succeed: never for a socket that connects, is connected or was accepted. */
  private get isBindable(): boolean {
    return this.dialer !== undefined && !this.isClosed && !this.hasBegun()
  }

  readStart(): number {
    this.wantsData = true
    this.noteReading(true)
    this.updateLife()
    this.stream?.startReading()
    return 0
  }

  readStop(): number {
    this.wantsData = false
    this.noteReading(false)
    this.updateLife()
    return 0
  }

  shutdown(request: { oncomplete?: (status: number) => void }): number {
    if (this.stream === undefined) return 1
    this.pendingShutdown = new Waiting('SHUTDOWNWRAP', () => complete(request, 0))
    // libuv completes a shutdown later, even one that is sent at once.
    if (this.stream.shutdown()) runAfterIo(() => this.handleShutdown())
    this.updateLife()
    return 0
  }

  getsockname(out: SocketName): number {
    return this.fillName(out, false)
  }

  getpeername(out: SocketName): number {
    return this.fillName(out, true)
  }

  /** No effect: each write is sent at once. */
  setNoDelay(_isOn: boolean): number {
    return 0
  }

  setKeepAlive(_isOn: boolean, _delayS: number): number {
    return 0
  }

  /** There are no packets: the value is only stored. */
  setTypeOfService(value: number): number {
    if (!this.hasBegun()) return UV_EBADF
    // The kernel does not let programs set the bits of ECN.
    this.typeOfService = value & ~ECN_MASK
    return 0
  }

  getTypeOfService(): number {
    return this.hasBegun() ? this.typeOfService : UV_EBADF
  }

  ref(): void {
    this.isUnreferenced = false
    this.updateLife()
  }

  unref(): void {
    this.isUnreferenced = true
    this.updateLife()
  }

  hasRef(): boolean {
    return !this.isUnreferenced && !this.isClosed
  }

  get asyncId(): number {
    return this.scope.asyncId()
  }

  renewScope(): void {
    this.scope.emitDestroy()
    // Node's own handle gives hooks a resource without `hasRef` here.
    this.scope = new AsyncResource(this.scopeType)
  }

  reset(callback: () => void): number {
    // libuv refuses SO_LINGER while a shutdown is under way (uv_tcp_close_reset).
    if (this.pendingShutdown !== undefined || this.isShuttingNatively) return UV_EINVAL
    this.stream?.close(true)
    this.close(callback)
    return 0
  }

  get isOnTcp(): boolean {
    return false
  }

  get isOnPath(): boolean {
    return this.isForPath || this.stream?.unixPath !== undefined
  }

  close(callback?: () => void): void {
    if (this.isClosed) {
      // If TCP took over, this handle is closed already: the timer of this attempt means the TCP handle.
      this.successor?.close(callback)
      return
    }
    this.isClosed = true
    this.wantsData = false
    const request = this.request
    this.request = undefined
    if (request !== undefined) this.dialer?.handleClosed(this)
    this.updateLife()
    this.stream?.close(this.hasUnread)
    this.processHost.runInClosingPhase(() => {
      try {
        this.scope.runInAsyncScope(() => callIfFunction(callback, this.handle))
      } finally {
        this.attempt = undefined
        this.upper = undefined
        this.detach()
        this.scope.emitDestroy()
      }
    })
    // Cancelled requests complete in a callback of their own: an error thrown there does not keep the socket open.
    if (this.pendingWrite !== undefined || this.pendingShutdown !== undefined || this.hasNativeRequest)
      this.processHost.runInClosingPhase(() => this.scope.runInAsyncScope(() => this.abandonWrites()))
    if (request !== undefined)
      this.processHost.runInClosingPhase(() =>
        this.scope.runInAsyncScope(() => complete(request, UV_ECANCELED, this.handle, request, false, false)),
      )
  }

  // What the dialer and the acceptor use.

  adopt(stream: SocketStream): void {
    this.stream = stream
    stream.sink = this
    this.updateLife()
  }

  dropStream(): void {
    if (this.countsAsAlive) this.stream?.channel.unref()
    this.countsAsAlive = false
    this.stream = undefined
  }

  run(action: () => void): void {
    this.scope.runInAsyncScope(guard, undefined, action)
  }

  finishConnect(status: number): void {
    const request = this.request
    if (request === undefined) return
    this.request = undefined
    this.updateLife()
    const isUp = status === 0
    this.run(() => complete(request, status, this.handle, request, isUp, isUp))
  }

  abandonConnect(): void {
    this.request = undefined
    this.updateLife()
  }

  /** `_writeGeneric` of a connected socket: true if all is sent; otherwise `callback` is kept until then. */
  writeFromSocket(
    socket: FastSocket,
    writev: boolean,
    data: unknown,
    encoding: string,
    callback: WriteCallback,
  ): void {
    socket._unrefTimer()
    const stream = this.stream as SocketStream
    if (this.isClosed) return callback(systemError('EBADF', 'write'))
    const isRefused = stream.refusesWrites
    const chunks = writev ? toChunks(data as WrittenChunk[]) : undefined
    const bytes = typeof data === 'string' ? toBytes(data, encoding as BufferEncoding) : (data as Uint8Array)
    const length = chunks === undefined ? bytes.length : lengthOf(chunks)
    const fate = isRefused ? stream.fateOfWrite(length) : 'sent'
    const hasFailed = fate === 'fails' || fate === 'fails late'
    if (!hasFailed || writev || !isCountedLate(data, encoding)) this.writtenCount += length
    if (hasFailed) {
      const error = systemError(stream.writeError, 'write')
      if (fate === 'fails') return callback(error)
      return runAfterIo(() => this.run(() => callback(error)))
    }
    noteLastWrite(false)
    if (isRefused) return callback()
    if ((chunks === undefined && stream.sendWhole(bytes)) || stream.write(chunks ?? [bytes]))
      return callback()
    noteLastWrite(true)
    noteQueueSize(socket, length)
    this.pendingWrite = new Waiting('WRITEWRAP', callback)
    this.updateLife()
  }

  // The methods of `StreamSink`.

  get isReading(): boolean {
    return this.wantsData && !this.isClosed && (this.scheduledLength === 0 || !this.isFull)
  }

  handleEnd(): void {
    // After the end, as in libuv, the handle does not read and does not keep the process alive.
    this.wantsData = false
    this.updateLife()
    this.feedEnd()
  }

  handleWritten(): void {
    const write = this.pendingWrite
    this.pendingWrite = undefined
    this.socket?._unrefTimer()
    if (write !== undefined && this.socket !== undefined) noteQueueSize(this.socket, 0)
    write?.complete()
    this.finishNativeWrite(0)
    this.updateLife()
  }

  handleSent(): void {
    this.socket?._unrefTimer()
  }

  handleShutdown(): void {
    const shutdown = this.pendingShutdown
    this.pendingShutdown = undefined
    shutdown?.complete()
    this.finishNativeShutdown(0)
    this.updateLife()
  }

  handleError(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
    // As with libuv, a failed write of native code is reported before the read error: first to tls, then to its
    // program.
    const errno = errnoOf(code)
    this.finishNativeWrite(errno)
    const error = systemError(code, syscall, cause)
    const write = syscall === 'write' ? this.pendingWrite : undefined
    if (write === undefined) return this.run(() => this.fail(syscall, errno, error))
    // The failed write is reported first, and by it the error of the socket.
    this.pendingWrite = undefined
    write.complete(error)
    this.updateLife()
  }

  protected fail(syscall: 'read' | 'write', errno: number, error: Error): void {
    const owner = this.upper ?? this.socket
    if (syscall === 'write' || !reportToReader(owner?._handle, errno)) owner?.destroy(error)
  }

  handleAnswered(): void {
    this.dialer?.handleAccepted(this)
    this.attempt = undefined
  }

  handleConnected(): void {
    this.finishConnect(0)
  }

  handleRefused(refusal: number | undefined): void {
    this.dialer?.handleRefused(this, refusal)
  }

  /** A TCP handle has no descriptor until the name is resolved. */
  hasBegun(): boolean {
    return this.request !== undefined || this.stream !== undefined
  }

  private begin(request: ConnectRequest, address: string, port: number, family: Family): number {
    if (this.request !== undefined) return UV_EALREADY
    if (this.stream !== undefined) return UV_EISCONN
    this.request = request
    this.isForPath = family === UNIX
    this.updateLife()
    return (this.dialer as Dialer).dial(this, request, address, port, family)
  }

  protected push(bytes: Buffer): void {
    if (isUncaughtHandled()) guard(this.pushNow, this, bytes)
    else this.pushNow(bytes)
  }

  /** As net.js's own reader pushes a buffer. */
  private pushNow(bytes: Buffer): void {
    const socket = this.socket as FastSocket
    socket._unrefTimer()
    if (socket.destroyed || socket.push(bytes)) return
    this.handle.reading = false
    if (!socket.destroyed) this.readStop()
  }

  private fillName(out: SocketName, isPeer: boolean): number {
    const { stream } = this
    if (stream?.addresses === undefined || stream.state === 'connecting') return UV_EBADF
    const isServerSide = this.dialer === undefined
    Object.assign(out, isServerSide !== isPeer ? serverName(stream.addresses) : clientName(stream.addresses))
    return 0
  }

  /**
   * As with libuv: the handle keeps the process alive while it reads, unless unreferenced, and while it writes,
   * connects or shuts down.
   */
  updateLife(): void {
    const counts =
      !this.isClosed &&
      this.stream !== undefined &&
      ((this.wantsData && !this.isUnreferenced) ||
        this.request !== undefined ||
        this.pendingWrite !== undefined ||
        this.pendingShutdown !== undefined ||
        this.hasNativeRequest)
    if (counts === this.countsAsAlive) return
    this.countsAsAlive = counts
    if (counts) this.stream?.channel.ref()
    else this.stream?.channel.unref()
  }

  private abandonWrites(): void {
    const write = this.pendingWrite
    this.pendingWrite = undefined
    this.pendingShutdown?.emitDestroy()
    this.pendingShutdown = undefined
    const error = REPORTS_CANCELED_WRITES ? systemError('ECANCELED', 'write') : null
    write?.runInAsyncScope(write.callback, undefined, error)
    write?.emitDestroy()
    this.cancelNativeRequests()
  }
}
