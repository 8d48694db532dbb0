/**
 * The handle under a fast `net.Socket`: a native stream (JSStream) whose bytes travel over a `Stream`.
 *
 * While JavaScript owns the socket, no native code is involved: writes come in through `_writeGeneric` (install.ts) and
 * data goes out through `socket.push`. As soon as native code may have attached itself (tls, http2, the HTTP parser: they
 * read `isStreamBase`, call the native `readStart`, or use `useUserBuffer`), data is given to the native stream, until
 * Node's own JavaScript reader turns out to be its listener. See docs/decisions/0002-handle-not-subclass.md.
 */
import { AsyncResource } from 'node:async_hooks'
import type {
  Dialer,
  FastHandle,
  FastHandleClass,
  FastSocket,
  WriteCallback,
} from './fast-handle-contract.ts'
import {
  type ConnectRequest,
  nodeInternals,
  type ReadListener,
  type SocketName,
  type TcpHandle,
} from './node-internals.ts'
import { systemError, UV_EBADF, UV_ECANCELED, UV_EPIPE } from './socket-errors.ts'
import type { Stream, StreamErrorCode, StreamSink } from './stream.ts'
import { clientName, serverName } from './stream-addresses.ts'
import { toBytes, toChunks, type WrittenChunk } from './written-chunks.ts'

let handleClass: FastHandleClass | undefined

/** The class, made on first use; undefined if this Node has no native stream class where we look for it. */
export function fastHandleClass(): FastHandleClass | undefined {
  handleClass ??= defineFastHandle()
  return handleClass
}

export function isFastHandle(handle: unknown): handle is FastHandle {
  return handleClass !== undefined && handle instanceof handleClass
}

function defineFastHandle(): FastHandleClass | undefined {
  const internals = nodeInternals()
  if (internals === undefined) return undefined
  const { JsStream } = internals
  let ownerSymbol: symbol | undefined

  /** What the native stream calls when JavaScript, and nobody native, listens to it. */
  const handleNativeRead = function (this: SocketHandle, arrayBuffer: ArrayBuffer | undefined): unknown {
    this.sawScript()
    return this.onread?.call(this, arrayBuffer)
  }

  class SocketHandle extends JsStream {
    socket: FastSocket | undefined
    stream: Stream | undefined
    host: string | undefined
    successor: TcpHandle | undefined
    isClosed = false
    isUnreferenced = false
    /** net.js writes and reads this one. */
    reading = false
    /** Keeps http.Server from handing the stream to its native parser. */
    _consumed = true

    readonly #dialer: Dialer | undefined
    readonly #scope = new AsyncResource('FASTSOCKET')
    #onread: ReadListener | undefined
    /** Node's own reader, which net.js sets first. */
    #stockReader: ReadListener | undefined
    #request: ConnectRequest | undefined
    #isReading = false
    #mayBeNative = false
    #scriptReads = false
    /** Size of the buffer that net.js reads into by `onread`; 0 if it does not. */
    #userBufferSize = 0
    #countsAsAlive = false
    #bytesRead = 0
    #bytesWritten = 0
    #writeCallback: WriteCallback | undefined
    #writeRequest: object | undefined
    #shutdownRequest: { oncomplete?: (status: number) => void } | undefined
    #nativeShutdown = false

    constructor(dialer: Dialer | undefined) {
      super()
      this.#dialer = dialer
      super.onread = handleNativeRead
    }

    // What net.js, tls and http2 see.

    override get onread(): ReadListener | undefined {
      return this.#onread
    }

    /** Set by net.js right after it has made a socket the handle's owner. */
    override set onread(listener: ReadListener | undefined) {
      this.#onread = listener
      this.#stockReader ??= listener
      ownerSymbol ??= Object.getOwnPropertySymbols(this).find(symbol => symbol.description === 'owner_symbol')
      if (ownerSymbol !== undefined) this.socket ??= (this as never)[ownerSymbol]
      // Anything but the stock reader, such as the agent's guard for idle sockets, must be asked for every byte.
      if (listener !== this.#stockReader) this.#mayBeNative = true
    }

    /** Read by whoever is about to attach native code. */
    override get isStreamBase(): boolean {
      this.#mayBeNative = true
      return true
    }

    override get bytesRead(): number {
      return this.#bytesRead
    }

    override get bytesWritten(): number {
      return this.#bytesWritten
    }

    get writeQueueSize(): number {
      return this.stream?.pendingLength ?? 0
    }

    isClosing(): boolean {
      return this.isClosed
    }

    connect(request: ConnectRequest, address: string, port: number): number {
      return this.#connect(request, address, port, 4)
    }

    connect6(request: ConnectRequest, address: string, port: number): number {
      return this.#connect(request, address, port, 6)
    }

    bind(address: string, port: number): number {
      return (this.#dialer as Dialer).demoteToBind(this as unknown as FastHandle).bind(address, port)
    }

    bind6(address: string, port: number, flags?: number): number {
      return (this.#dialer as Dialer).demoteToBind(this as unknown as FastHandle).bind6(address, port, flags)
    }

    override readStart(): number {
      this.#isReading = true
      this.#updateLife()
      this.stream?.startReading()
      return 0
    }

    override readStop(): number {
      this.#isReading = false
      this.#updateLife()
      return 0
    }

    /** The native `readStart` and `readStop`: only native code calls those. */
    onreadstart(): number {
      this.#mayBeNative = true
      return this.readStart()
    }

    onreadstop(): number {
      return this.readStop()
    }

    override useUserBuffer(bytes: Uint8Array): void {
      this.#userBufferSize = bytes.length
      this.#mayBeNative = true
      super.useUserBuffer(bytes)
    }

    override shutdown(request: { oncomplete?: (status: number) => void }): number {
      if (this.stream === undefined || this.stream.shutdown()) return 1
      this.#shutdownRequest = request
      this.#updateLife()
      return 0
    }

    onshutdown(request: object): number {
      this.#nativeShutdown = true
      this.#shutdownRequest = request
      if (this.stream === undefined || this.stream.shutdown()) queueMicrotask(() => this.handleShutdown())
      return 0
    }

    onwrite(request: object, buffers: Buffer[]): number {
      const { stream } = this
      if (stream === undefined || stream.refusesWrites || this.isClosed) {
        queueMicrotask(() => super.finishWrite(request, UV_EPIPE))
        return 0
      }
      for (const buffer of buffers) this.#bytesWritten += buffer.length
      // The native side takes no completion while it is still within its call.
      if (stream.write(buffers)) {
        queueMicrotask(() => super.finishWrite(request, 0))
      } else {
        this.#writeRequest = request
        this.#updateLife()
      }
      return 0
    }

    getsockname(out: SocketName): number {
      return this.#name(out, false)
    }

    getpeername(out: SocketName): number {
      return this.#name(out, true)
    }

    setNoDelay(): number {
      return 0
    }

    setKeepAlive(): number {
      return 0
    }

    ref(): void {
      this.isUnreferenced = false
      this.#updateLife()
    }

    unref(): void {
      this.isUnreferenced = true
      this.#updateLife()
    }

    hasRef(): boolean {
      return !this.isUnreferenced
    }

    reset(callback: () => void): number {
      this.stream?.close(true)
      this.close(callback)
      return 0
    }

    close(callback?: () => void): void {
      if (this.isClosed) {
        // Closed already, when TCP took over; whoever timed out this attempt means the TCP handle.
        this.successor?.close(callback)
        return
      }
      this.isClosed = true
      this.#isReading = false
      const request = this.#request
      this.#request = undefined
      this.#updateLife()
      this.stream?.close(false)
      setImmediate(() => {
        this.run(() => {
          request?.oncomplete?.(UV_ECANCELED, this, request, false, false)
          this.#abandonWrites()
          callback?.call(this)
        })
      })
    }

    // What the dialer and the acceptor use.

    adopt(stream: Stream): void {
      this.stream = stream
      stream.sink = this as unknown as StreamSink
      this.#updateLife()
    }

    dropStream(): void {
      if (this.#countsAsAlive) this.stream?.channel.letGo()
      this.#countsAsAlive = false
      this.stream = undefined
    }

    run(action: () => void): void {
      this.#scope.runInAsyncScope(action)
    }

    finishConnect(status: number): void {
      const request = this.#request
      if (request === undefined) return
      this.#request = undefined
      this.#updateLife()
      const isUp = status === 0
      this.run(() => request.oncomplete?.(status, this, request, isUp, isUp))
    }

    abandonConnect(): void {
      this.#request = undefined
      this.#updateLife()
    }

    /** `_writeGeneric` of a connected socket: all of it is out, or `callback` is kept until it is. */
    writeFromSocket(
      socket: FastSocket,
      writev: boolean,
      data: unknown,
      encoding: string,
      callback: WriteCallback,
    ): void {
      socket._unrefTimer()
      const stream = this.stream as Stream
      if (this.isClosed) return callback(systemError('EBADF', 'write'))
      if (stream.refusesWrites) return callback(systemError('EPIPE', 'write'))
      const chunks = writev
        ? toChunks(data as WrittenChunk[])
        : [toBytes(data as never, encoding as BufferEncoding)]
      for (const chunk of chunks) this.#bytesWritten += chunk.length
      if (stream.write(chunks)) return callback()
      this.#writeCallback = callback
      this.#updateLife()
    }

    // What the stream tells its sink.

    get isReading(): boolean {
      return this.#isReading && !this.isClosed
    }

    handleData(bytes: Buffer): number {
      if (!this.#mayBeNative) {
        this.#bytesRead += bytes.length
        this.#scope.runInAsyncScope(this.#push, this, bytes)
        return bytes.length
      }
      if (this.#userBufferSize > 0) return this.#fillUserBuffer(bytes)
      this.#bytesRead += bytes.length
      this.#scriptReads = false
      super.readBuffer(bytes)
      if (this.#scriptReads && this.onread === this.#stockReader) this.#mayBeNative = false
      return bytes.length
    }

    handleEnd(): void {
      // As libuv does: after the end there is nothing to read, and nothing to stay alive for.
      this.#isReading = false
      this.#updateLife()
      super.emitEOF()
    }

    handleWritten(): void {
      const callback = this.#writeCallback
      const request = this.#writeRequest
      this.#writeCallback = undefined
      this.#writeRequest = undefined
      this.#updateLife()
      this.socket?._unrefTimer()
      if (callback !== undefined) this.#scope.runInAsyncScope(callback)
      if (request !== undefined) super.finishWrite(request, 0)
    }

    handleSent(): void {
      this.socket?._unrefTimer()
    }

    handleShutdown(): void {
      const request = this.#shutdownRequest
      this.#shutdownRequest = undefined
      this.#updateLife()
      if (request === undefined) return
      if (this.#nativeShutdown) super.finishShutdown(request, 0)
      else this.run(() => request.oncomplete?.(0))
    }

    handleError(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
      this.run(() => this.socket?.destroy(systemError(code, syscall, cause)))
    }

    handleConnected(): void {
      this.finishConnect(0)
    }
    handleRefused(refusal: number | undefined): void {
      this.#dialer?.handleRefused(this as unknown as FastHandle, refusal)
    }

    sawScript(): void {
      this.#scriptReads = true
    }

    #connect(request: ConnectRequest, address: string, port: number, family: 4 | 6): number {
      this.#request = request
      this.#updateLife()
      return (this.#dialer as Dialer).dial(this as unknown as FastHandle, request, address, port, family)
    }

    /** One buffer of the program's at a time: it may stop reading after each. */
    #fillUserBuffer(bytes: Buffer): number {
      let taken = 0
      while (taken < bytes.length && this.isReading) {
        const part = bytes.subarray(taken, taken + this.#userBufferSize)
        taken += part.length
        this.#bytesRead += part.length
        super.readBuffer(part)
      }
      return taken
    }

    /** What net.js's own reader does with a buffer. */
    #push(bytes: Buffer): void {
      const socket = this.socket as FastSocket
      socket._unrefTimer()
      if (socket.destroyed || socket.push(bytes)) return
      this.reading = false
      if (!socket.destroyed) this.readStop()
    }

    #name(out: SocketName, isPeer: boolean): number {
      const { stream } = this
      if (stream?.addresses === undefined || stream.peerId === -1) return UV_EBADF
      const isServerSide = this.#dialer === undefined
      Object.assign(
        out,
        isServerSide !== isPeer ? serverName(stream.addresses) : clientName(stream.addresses),
      )
      return 0
    }

    /** As with libuv: a handle counts while it reads, writes, connects or shuts down. */
    #updateLife(): void {
      const counts =
        !this.isClosed &&
        !this.isUnreferenced &&
        this.stream !== undefined &&
        (this.#isReading ||
          this.#request !== undefined ||
          this.#writeCallback !== undefined ||
          this.#writeRequest !== undefined ||
          this.#shutdownRequest !== undefined)
      if (counts === this.#countsAsAlive) return
      this.#countsAsAlive = counts
      if (counts) this.stream?.channel.keepAlive()
      else this.stream?.channel.letGo()
    }

    #abandonWrites(): void {
      const callback = this.#writeCallback
      const request = this.#writeRequest
      this.#writeCallback = undefined
      this.#writeRequest = undefined
      callback?.(null)
      if (request !== undefined) super.finishWrite(request, UV_ECANCELED)
      if (this.#nativeShutdown && this.#shutdownRequest !== undefined) {
        super.finishShutdown(this.#shutdownRequest, UV_ECANCELED)
      }
      this.#shutdownRequest = undefined
    }
  }

  return SocketHandle as unknown as FastHandleClass
}
