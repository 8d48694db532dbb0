/**
 * What native code sees of a fast handle. Tls, http2 and the HTTP parser attach themselves to the native stream as they
 * do to a TCP handle: they read `isStreamBase`, call the native `readStart`, or use `useUserBuffer`. Data then goes to
 * the native stream, until its listener turns out to be Node's own JavaScript reader.
 * See docs/decisions/0002-handle-not-subclass.md and docs/decisions/0016-native-feeds.md.
 */
import type { AsyncResource } from 'node:async_hooks'
import { setImmediate } from '../../nic/real-time.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import { afterNativeCall, enterNative, leaveNative } from '../host/native-calls.ts'
import { hasFeeds, scheduleFeed } from '../host/native-feeds.ts'
import { disown, drainTicks, isUncaughtHandled, ownerOf, type ReadListener } from '../host/node-internals.ts'
import { errnoOf, UV_ECANCELED, UV_EOF, UV_EPIPE } from '../host/socket-errors.ts'
import { freeNow } from '../host/spent-memory.ts'
import { ownRead, reportRead } from '../host/stream-state.ts'
import { guard } from '../host/thrown-errors.ts'
import { lengthOf } from '../host/written-chunks.ts'
import { endLoan, isShared } from '../stream/lent-memory.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import { FLAG_PUSH, FRAMING_MAX } from '../stream/stream-layout.ts'
import type { FastSocket } from './fast-handle-contract.ts'
import { nativeMethods, type ShownHandle } from './socket-handle.ts'

/**
 * Most bytes that are scheduled for native code before it is asked again whether it reads: as many as one turn can
 * bring.
 */
const SCHEDULED_MAX = 768 * 1024
/** The same for a socket whose reader is not known yet. */
const PROBED_MAX = 64 * 1024
/** One read of libuv. The reader may stop after it; a paused parser of http accepts nothing more. */
const PIECE_MAX = 64 * 1024

/**
 * An http2 session that answers many requests writes their frames at once. So many pieces are sent on their own: the
 * peer can then send its next requests while the rest is under way.
 */
const SLICE = 16

/** Scheduled in place of a piece: feeds the oldest unread piece. */
const UNREAD_TURN = Buffer.alloc(0)

/** Status of a write that the stream refuses. */
function statusOfRefused(stream: SocketStream | undefined, length: number): number {
  if (stream === undefined) return UV_EPIPE
  return stream.fateOfWrite(length) === 'lost' ? 0 : errnoOf(stream.writeError)
}

/** True if all of it is out. */
function writeInSlices(stream: SocketStream, buffers: Buffer[]): boolean {
  if (buffers.length <= SLICE) return stream.write(buffers, true)
  let isOut = true
  for (let at = 0; at < buffers.length; at += SLICE)
    isOut = stream.write(buffers.slice(at, at + SLICE), true, FLAG_PUSH)
  return isOut
}

/** Copies pooled bytes before user code sees them. */
function makeOwn(bytes: Buffer): Buffer {
  if (!isShared(bytes)) return bytes
  const own = allocateFresh(bytes.length)
  own.set(bytes)
  endLoan(bytes)
  return own
}

export abstract class NativeSide {
  /** The object in `_handle` of the socket. */
  abstract readonly handle: ShownHandle
  socket: FastSocket | undefined
  stream: SocketStream | undefined
  isClosed = false
  readCount = 0
  writtenCount = 0

  private listener: ReadListener | undefined
  /** Node's own reader, which net.js sets first. */
  private stockReader: ReadListener | undefined
  /** Native code may have been attached: the code that attaches it reads `isStreamBase` first. */
  isNative = false
  /** Data is with the native stream, which has not yet passed it to a reader. */
  private isProbing = false
  /** The native stream has had data: if its listener were JavaScript, `isNative` would be false by now. */
  private wasFed = false
  /** Pieces that are scheduled for the native stream: everything else must queue behind them. */
  protected feedCount = 0
  protected scheduledLength = 0
  /** The reader has stopped, perhaps with pieces scheduled. */
  private isStopped = false
  private readonly unread: (Buffer | undefined)[] = []
  /** Size of the buffer that net.js reads into by `onread`; 0 if it does not. */
  private userBufferSize = 0
  /** Native code has written: tls or http2 is attached, and not the parser of http, which reads 64 KiB at a time. */
  private isFramed = false
  /** Of native code: http2, and not tls. Undefined until it writes. */
  private isHttp2: boolean | undefined
  private writeRequest: object | undefined
  private shutdownRequest: object | undefined

  get onread(): ReadListener | undefined {
    return this.listener
  }

  /** Set by net.js right after it has made a socket the handle's owner. */
  set onread(listener: ReadListener | undefined) {
    this.listener = listener
    this.stockReader ??= listener
    // A program may give the handle to another socket.
    if (listener === this.stockReader)
      this.socket = (ownerOf(this.handle) as FastSocket | undefined) ?? this.socket
    // Any other listener, such as the agent's guard for idle sockets, must be called for every read.
    if (listener !== this.stockReader) this.isNative = true
  }

  useUserBuffer(bytes: Uint8Array): void {
    this.userBufferSize = bytes.length
    this.isNative = true
    nativeMethods().useUserBuffer.call(this.handle, bytes)
  }

  /** The native stream has read for JavaScript: no native code listens to it. */
  handleNativeRead(arrayBuffer: ArrayBuffer | undefined): unknown {
    if (this.isProbing && this.listener === this.stockReader) this.isNative = false
    const next = this.listener?.call(this.handle, ownRead(arrayBuffer))
    // `onread` of the program may return another buffer after each read.
    if (this.userBufferSize > 0 && next instanceof Uint8Array && next.length > 0)
      this.userBufferSize = next.length
    return next
  }

  handleNativeShutdown(request: object): number {
    this.shutdownRequest = request
    if (this.stream === undefined || this.stream.shutdown()) {
      afterNativeCall(() => this.finishNativeShutdown(0))
    } else {
      this.updateLife()
    }
    return 0
  }

  /**
   * http2 expects a write to complete at once, as over TCP: only then does a destroyed session send its last frames,
   * and only then do requests of several sessions close in order. Tls cannot bear that, and script would get the
   * callback before the write has returned.
   */
  handleNativeWrite(request: { readonly oncomplete?: unknown }, buffers: Buffer[]): number {
    const { stream } = this
    if (stream === undefined || stream.refusesWrites || this.isClosed) {
      const status = statusOfRefused(this.isClosed ? undefined : stream, lengthOf(buffers))
      // As from uv_try_write: tls destroys its socket before its own write returns.
      if (status !== 0) return status
      afterNativeCall(() => this.completeWrite(request, status))
      return 0
    }
    this.isFramed = true
    for (const buffer of buffers) this.writtenCount += buffer.length
    const isHttp2 = this.completesAtOnce(request)
    if (!(isHttp2 ? writeInSlices(stream, buffers) : stream.write(buffers, true))) {
      this.writeRequest = request
      this.updateLife()
      return 0
    }
    // A write that had to wait may have been on offer, and RDMA keeps what was registered.
    freeNow(buffers)
    this.completeWritten(request, isHttp2)
    return 0
  }

  /** A write of http2. */
  protected completesAtOnce(request: { readonly oncomplete?: unknown }): boolean {
    if (request.oncomplete !== undefined) return false
    this.isHttp2 ??= !this.isUnderTls()
    return this.isHttp2
  }

  protected completeWritten(request: object, isAtOnce: boolean): void {
    if (isAtOnce) guard(this.finishAtOnce, this, request)
    else afterNativeCall(() => this.completeWrite(request, 0))
  }

  // For the rest of the handle.

  /**
   * Drops all references: the handle is closed. Only a full collection frees a native object to which script has added
   * members, and all that it refers to.
   */
  detach(): void {
    this.socket = undefined
    this.stream = undefined
    this.listener = undefined
    this.stockReader = undefined
    this.unread.length = 0
    disown(this.handle)
  }

  /** Delivers received bytes to the reader, JavaScript or native; returns how many it consumed. */
  handleData(bytes: Buffer): number {
    const { length } = bytes
    if (!this.isNative && this.feedCount === 0 && !hasFeeds()) {
      this.readCount += length
      this.scope.runInAsyncScope(this.push, this, bytes.byteOffset === 0 ? bytes : makeOwn(bytes))
      return length
    }
    if (this.userBufferSize > 0) return this.fillUserBuffer(bytes)
    if (bytes.length <= PIECE_MAX || (this.isFramed && bytes.length <= PIECE_MAX + FRAMING_MAX))
      this.schedule(bytes)
    else this.scheduleParts(makeOwn(bytes))
    return length
  }

  feedEnd(): void {
    if (this.mustQueue()) return this.schedule(undefined)
    // As the native stream does, without its cost.
    this.run(() => this.endScript())
  }

  private endScript(): void {
    if (this.listener === undefined || !reportRead(this.handle, this.listener, UV_EOF))
      nativeMethods().emitEOF.call(this.handle)
  }

  /** Native code that did not read `isStreamBase` has been attached. */
  noteNative(): void {
    this.isNative = true
  }

  /** The native stream copies data into a buffer of the program's. */
  get copies(): boolean {
    return this.userBufferSize > 0 && this.mustQueue()
  }

  /** True if the native stream must be fed before more is scheduled. */
  get isFull(): boolean {
    return this.scheduledLength >= (this.wasFed ? SCHEDULED_MAX : PROBED_MAX)
  }

  /** The reader has not received all that was scheduled for it. */
  get isFeeding(): boolean {
    return this.feedCount > 0 && !this.isStopped && !this.isClosed
  }

  /** Native code may listen, or a feed is scheduled, for this stream or an earlier one. */
  private mustQueue(): boolean {
    return this.isNative || this.feedCount > 0 || hasFeeds()
  }

  private scheduleParts(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += PIECE_MAX) this.schedule(bytes.subarray(at, at + PIECE_MAX))
  }

  private schedule(bytes: Buffer | undefined): void {
    this.feedCount++
    this.scheduledLength += bytes?.length ?? 0
    if (!scheduleFeed(this, bytes, this.feedCount === 1)) this.feedNow(bytes)
  }

  feedNow(bytes: Buffer | undefined): void {
    const isNew = bytes !== UNREAD_TURN
    if (isNew && !this.isStopped && this.unread.length === 0) return this.feedPiece(bytes)
    if (isNew) this.unread.push(bytes)
    if (!this.isStopped && this.unread.length > 0) this.feedPiece(this.unread.shift())
  }

  private feedPiece(bytes: Buffer | undefined): void {
    this.feedCount--
    if (this.isClosed) return
    const wasFull = this.isFull
    this.scheduledLength -= bytes?.length ?? 0
    this.isProbing = true
    enterNative()
    try {
      if (!isUncaughtHandled()) this.feedNative(bytes)
      else this.feedGuarded(bytes)
    } finally {
      this.isProbing = false
      this.wasFed = true
      leaveNative()
      if (bytes !== undefined) endLoan(bytes)
      if (wasFull && !this.isFull) this.stream?.startReading()
    }
  }

  private feedNative(bytes: Buffer | undefined): void {
    if (bytes === undefined) return nativeMethods().emitEOF.call(this.handle)
    this.readCount += bytes.length
    nativeMethods().readBuffer.call(this.handle, bytes)
  }

  private feedGuarded(bytes: Buffer | undefined): void {
    try {
      this.feedNative(bytes)
    } catch (error) {
      this.throwInScope(error)
    }
  }

  /** Called at each `readStart` and `readStop`. */
  noteReading(isReading: boolean): void {
    this.isStopped = !isReading
    if (!isReading) return
    // The pieces stay in `unread`: what has been scheduled since is queued behind them.
    for (let left = this.unread.length; left > 0; left--) {
      if (!scheduleFeed(this, UNREAD_TURN, false)) setImmediate(() => this.feedNow(UNREAD_TURN))
    }
  }

  /** Received bytes that the reader has not received. */
  get hasUnread(): boolean {
    return this.unread.some(bytes => bytes !== undefined)
  }

  get hasNativeRequest(): boolean {
    return this.writeRequest !== undefined || this.isShuttingNatively
  }

  get isShuttingNatively(): boolean {
    return this.shutdownRequest !== undefined
  }

  finishNativeWrite(status: number): void {
    const request = this.writeRequest
    this.writeRequest = undefined
    if (request !== undefined) this.completeWrite(request, status)
  }

  protected beginNativeShutdown(request: object): void {
    this.shutdownRequest = request
  }

  finishNativeShutdown(status: number): void {
    const request = this.shutdownRequest
    this.shutdownRequest = undefined
    if (request === undefined) return
    enterNative()
    try {
      nativeMethods().finishShutdown.call(this.handle, request, status)
    } finally {
      leaveNative()
    }
  }

  cancelNativeRequests(): void {
    this.finishNativeWrite(UV_ECANCELED)
    this.finishNativeShutdown(UV_ECANCELED)
  }

  /** The asynchronous context of the socket. */
  protected abstract scope: AsyncResource

  /** Passes a buffer to net.js's own reader; called in `scope`. */
  protected abstract push(bytes: Buffer): void

  abstract updateLife(): void

  /** Runs `action` in the asynchronous context of the socket. */
  abstract run(action: () => void): void

  abstract get isReading(): boolean

  /** A TLSSocket shares the flag `reading` with the handle below it: it puts an accessor in its place. */
  private isUnderTls(): boolean {
    return Object.getOwnPropertyDescriptor(this.handle, 'reading')?.get !== undefined
  }

  /** Fills the program's buffer, one read at a time: the program may stop after each. */
  private fillUserBuffer(bytes: Buffer): number {
    let consumed = 0
    while (consumed < bytes.length && this.isReading) {
      const part = bytes.subarray(consumed, consumed + this.userBufferSize)
      consumed += part.length
      this.readCount += part.length
      // A listener that throws has received these bytes, and no others.
      if (!isUncaughtHandled()) nativeMethods().readBuffer.call(this.handle, part)
      else this.readGuarded(part)
      // As after each read of libuv.
      if (consumed < bytes.length) drainTicks()
    }
    if (consumed === bytes.length) endLoan(bytes)
    return consumed
  }

  /** http2 would complete a write that throws a second time, which ends the process. */
  private finishAtOnce(request: object): void {
    this.completeWrite(request, 0)
  }

  private readGuarded(part: Buffer): void {
    try {
      nativeMethods().readBuffer.call(this.handle, part)
    } catch (error) {
      this.throwInScope(error)
    }
  }

  private throwInScope(error: unknown): void {
    this.run(() => {
      throw error
    })
  }

  protected completeWrite(request: object, status: number): void {
    enterNative()
    try {
      nativeMethods().finishWrite.call(this.handle, request, status)
    } finally {
      leaveNative()
    }
  }
}
