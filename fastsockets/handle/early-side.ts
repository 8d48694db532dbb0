/**
 * The side of a handle whose connection is over TCP, and that native code is about to read, in the first phase of a program: it needs
 * little of this package. PromotedHandle takes the handle over once the rest is loaded (promotion/promoted-handle.ts).
 */
import type { EventEmitter } from 'node:events'
import { afterNativeCall, enterNative, leaveNative } from '../host/native-calls.ts'
import {
  type ConnectRequest,
  callIfFunction,
  copyOwner,
  disown,
  drainTicks,
  type ReadListener,
  type SocketName,
} from '../host/node-internals.ts'
import { errorOfErrno, UV_EINVAL, UV_EISCONN, UV_EOF } from '../host/socket-errors.ts'
import { lastRead, ownRead, reportToReader } from '../host/stream-state.ts'
import { guard } from '../host/thrown-errors.ts'
import { lengthOf } from '../host/written-chunks.ts'
import type { FastSocket } from './fast-handle-contract.ts'
import { createHandle, type HandleSide, nativeMethods, type ShownHandle } from './socket-handle.ts'
import { type ConnectedTcp, isOverPath, shutdownBelow, writeBelow } from './tcp-below.ts'

type Service = { getTypeOfService?(): number; setTypeOfService?(value: number): number; asyncReset?(): void }

/** RFC 8446, section 5.1: type, version, length. */
const TLS_HEADER_SIZE = 5
const TLS_LENGTH = 3
/** RFC 9113, section 4.1: the length is first. */
const HTTP2_HEADER_SIZE = 9
const HTTP2_STREAM = 5
/** RFC 9113, section 3.4: what a client of http2 sends first. */
const PREFACE_SIZE = 24
/** Most bytes that http2 writes during one read and that leave together: as many as libuv reads at once. */
const GATHERED_MAX = 64 * 1024

/** Whether `once` has added it. */
function isOnce(listener: object): boolean {
  return 'listener' in listener
}

/** Those in use. */
export const earlySides = new Set<EarlySide>()

export class EarlySide implements HandleSide {
  readonly handle: ShownHandle
  readonly tcp: ConnectedTcp & Service
  readonly socket: FastSocket
  onread: ReadListener | undefined
  /** The TLS socket above; http2 reads if there is none. */
  readonly upper: FastSocket | undefined
  isClosed = false
  isReading: boolean
  hasShut = false
  private readonly frameHeader = Buffer.alloc(HTTP2_HEADER_SIZE)
  private headerLength = 0
  /** Of the frame that TCP brings. */
  private frameLeft = 0
  /** Of http2: the stream of the last frame; 0 is the connection. */
  private lastStream = 0
  /** The frames of one read are being fed: what http2 writes meanwhile is gathered. */
  private isFeeding = false
  private gathered: Buffer[] = []
  private gatheredLength = 0
  private readonly onWrite: (length: number) => void

  /** Puts the handle in place of `tcp`. `onWrite` is told of each write of native code. */
  constructor(
    tcp: ConnectedTcp,
    socket: FastSocket,
    onWrite: (length: number) => void,
    upper: FastSocket | undefined,
  ) {
    this.tcp = tcp
    this.socket = socket
    this.onWrite = onWrite
    if (upper === undefined && (socket as { server?: object | null }).server) this.frameLeft = PREFACE_SIZE
    this.upper = upper
    this.handle = createHandle(this, isOverPath(tcp))
    copyOwner(tcp, this.handle)
    this.onread = tcp.onread
    this.isReading = this.handle.reading = tcp.reading
    tcp.onread = arrayBuffer => this.readTcp(arrayBuffer)
    socket._handle = this.handle
    earlySides.add(this)
  }

  private readTcp(arrayBuffer: ArrayBuffer | undefined): void {
    const { result, offset } = lastRead() ?? { result: arrayBuffer?.byteLength ?? UV_EOF, offset: 0 }
    if (arrayBuffer === undefined && result !== UV_EOF) return this.fail(result)
    if (arrayBuffer === undefined) return this.feed(undefined)
    this.isFeeding = true
    try {
      this.feedFrames(Buffer.from(arrayBuffer, offset, result))
    } finally {
      this.isFeeding = false
      this.flush()
    }
  }

  /**
   * Node runs next ticks and microtasks after each callback of native code, but not while JavaScript is below it, as here. A program
   * that awaits each event would miss the second one of a read. So frames are fed one by one, and ticks run in between. Those of
   * several streams are fed together, since each has events of its own: then http2 writes its answers at once.
   */
  private feedFrames(bytes: Buffer): void {
    let from = 0
    for (let at = 0; at < bytes.length; ) {
      if (this.frameLeft === 0) this.frameHeader[this.headerLength++] = bytes[at++] as number
      if (this.headerLength === this.headerSize) {
        const start = at - this.headerLength
        const isJoined = this.beginFrame()
        if (!isJoined && start > from) {
          this.feed(bytes.subarray(from, start))
          from = start
          drainTicks()
          if (this.isClosed) return
        }
      }
      const taken = Math.min(this.frameLeft, bytes.length - at)
      at += taken
      this.frameLeft -= taken
    }
    this.feed(bytes.subarray(from))
  }

  private get headerSize(): number {
    return this.isUnderTls ? TLS_HEADER_SIZE : HTTP2_HEADER_SIZE
  }

  /** True if the frame may be fed together with the one before it. */
  private beginFrame(): boolean {
    const { frameHeader, lastStream } = this
    this.headerLength = 0
    if (this.isUnderTls) {
      this.frameLeft = frameHeader.readUInt16BE(TLS_LENGTH)
      return false
    }
    this.frameLeft = frameHeader.readUIntBE(0, 3)
    this.lastStream = frameHeader.readUInt32BE(HTTP2_STREAM)
    return lastStream !== 0 && this.lastStream > lastStream && !this.awaitsStreams()
  }

  /** The program awaits the next request of the server, perhaps one after another. */
  private awaitsStreams(): boolean {
    const { server } = this.socket as { server?: EventEmitter | null }
    if (!server) return false
    return server.rawListeners('stream').some(isOnce) || server.rawListeners('request').some(isOnce)
  }

  private get isUnderTls(): boolean {
    return this.upper !== undefined
  }

  private feed(bytes: Buffer | undefined): void {
    enterNative()
    try {
      if (bytes === undefined) nativeMethods().emitEOF.call(this.handle)
      else nativeMethods().readBuffer.call(this.handle, bytes)
    } finally {
      leaveNative()
    }
  }

  private fail(status: number, syscall: 'read' | 'write' = 'read'): void {
    const owner = this.upper ?? this.socket
    if (!reportToReader(owner._handle, status)) owner.destroy(errorOfErrno(status, syscall))
  }

  handleNativeRead(arrayBuffer: ArrayBuffer | undefined): unknown {
    return this.onread?.call(this.handle, ownRead(arrayBuffer))
  }

  handleNativeWrite(request: { readonly oncomplete?: unknown }, buffers: Buffer[]): number {
    const { isUnderTls } = this
    // As in NativeSide: http2 expects its writes to complete at once.
    const isAtOnce = !isUnderTls && request.oncomplete === undefined
    if (isAtOnce && this.gather(buffers)) {
      guard(it => this.complete(it, 0), undefined, request)
      return 0
    }
    this.flush()
    return this.send(buffers, isUnderTls, (written, isInCall) => {
      if (!isInCall) this.complete(request, written)
      else if (isAtOnce) guard(it => this.complete(it, 0), undefined, request)
      else afterNativeCall(() => this.complete(request, 0))
    })
  }

  /** False for a write that must wait for the kernel: as much is under way as TCP holds. */
  private gather(buffers: Buffer[]): boolean {
    const length = this.gatheredLength + lengthOf(buffers)
    if (!this.isFeeding || length > GATHERED_MAX || this.isClosed || this.tcp.writeQueueSize > 0) return false
    this.gathered.push(...buffers)
    this.gatheredLength = length
    return true
  }

  /** Sends what is gathered. Its writes are completed: a failure is one of the connection. */
  flush(): void {
    const { gathered } = this
    if (gathered.length === 0) return
    this.gathered = []
    this.gatheredLength = 0
    const fail = (status: number): void => {
      if (status < 0 && !this.isClosed) this.fail(status, 'write')
    }
    fail(this.send(gathered, false, fail))
  }

  private send(
    buffers: Buffer[],
    isUnderTls: boolean,
    onDone: (status: number, isInCall: boolean) => void,
  ): number {
    const { bytesWritten } = this.tcp
    const status = writeBelow(this.tcp, buffers, onDone)
    // Writes above TLS are counted as those of a socket.
    if (!isUnderTls) this.onWrite(this.tcp.bytesWritten - bytesWritten)
    return status
  }

  private complete(request: object, status: number): void {
    enterNative()
    try {
      nativeMethods().finishWrite.call(this.handle, request, status)
    } finally {
      leaveNative()
    }
  }

  handleNativeShutdown(request: object): number {
    this.flush()
    this.hasShut = true
    return shutdownBelow(this.tcp, () => {
      enterNative()
      try {
        nativeMethods().finishShutdown.call(this.handle, request, 0)
      } finally {
        leaveNative()
      }
    })
  }

  noteNative(): void {}

  useUserBuffer(bytes: Uint8Array): void {
    nativeMethods().useUserBuffer.call(this.handle, bytes)
  }

  readStart(): number {
    this.isReading = this.tcp.reading = true
    return this.tcp.readStart()
  }

  readStop(): number {
    this.isReading = this.tcp.reading = false
    return this.tcp.readStop()
  }

  shutdown(request: object): number {
    this.flush()
    this.hasShut = true
    return this.tcp.shutdown(request)
  }

  close(callback?: () => void): void {
    this.flush()
    if (this.end()) this.tcp.close(() => this.finish(callback))
  }

  reset(callback: () => void): number {
    this.flush()
    const status = this.isClosed ? UV_EINVAL : this.tcp.reset(() => this.finish(callback))
    if (status === 0) this.end()
    return status
  }

  private end(): boolean {
    const isFirst = !this.isClosed
    this.isClosed = true
    earlySides.delete(this)
    return isFirst
  }

  private finish(callback: (() => void) | undefined): void {
    callIfFunction(callback, this.handle)
    this.onread = undefined
    disown(this.handle)
  }

  // As TCP has it.

  get readCount(): number {
    return this.tcp.bytesRead
  }

  get writtenCount(): number {
    return this.tcp.bytesWritten + this.gatheredLength
  }

  get writeQueueSize(): number {
    return this.tcp.writeQueueSize
  }

  get asyncId(): number {
    return this.tcp.getAsyncId?.() ?? -1
  }

  renewScope(): void {
    this.tcp.asyncReset?.()
  }

  hasBegun(): boolean {
    return true
  }

  connect(_request: ConnectRequest, _address: string, _port?: number): number {
    return UV_EISCONN
  }

  connect6(_request: ConnectRequest, _address: string, _port: number): number {
    return UV_EISCONN
  }

  bind(_address: string, _port: number): number {
    return UV_EINVAL
  }

  bind6(_address: string, _port: number): number {
    return UV_EINVAL
  }

  getsockname(out: SocketName): number {
    return this.tcp.getsockname(out)
  }

  getpeername(out: SocketName): number {
    return this.tcp.getpeername(out)
  }

  setNoDelay(isOn: boolean): number {
    return this.tcp.setNoDelay(isOn)
  }

  setKeepAlive(isOn: boolean, delayS: number): number {
    return this.tcp.setKeepAlive(isOn, delayS)
  }

  setTypeOfService(value: number): number {
    return this.tcp.setTypeOfService?.(value) ?? UV_EINVAL
  }

  getTypeOfService(): number {
    return this.tcp.getTypeOfService?.() ?? UV_EINVAL
  }

  hasRef(): boolean {
    return this.tcp.hasRef()
  }

  ref(): void {
    this.tcp.ref()
  }

  unref(): void {
    this.tcp.unref()
  }
}
