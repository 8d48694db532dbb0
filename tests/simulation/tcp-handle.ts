/**
 * Node's TCP handle of a connected socket, over a simulated connection. net.js sees what tcp_wrap and stream_base show it: reads and
 * writes with their state in `streamBaseState`, and completions in callbacks after which ticks run.
 */

import {
  drainTicks,
  nodeInternals,
  type ReadListener,
  type SocketName,
} from '../../fastsockets/host/node-internals.ts'
import { processBinding } from '../../fastsockets/host/process-binding.ts'
import { UV_ECANCELED, UV_ECONNRESET, UV_EOF, UV_EPIPE } from '../../fastsockets/host/socket-errors.ts'
import { noteLastWrite } from '../../fastsockets/host/stream-state.ts'
import type { SimulatedTcp } from '../../nic/simulated/index.ts'
import type { ClosingPhase } from './closing-phase.ts'

interface Request {
  oncomplete?: (status: number, ...more: unknown[]) => void
  /** Of Node 26: set by native code only if the write has failed within the call. */
  writeStatus?: null
}

const { streamBaseState, kReadBytesOrError, kArrayBufferOffset, kBytesWritten, kLastWriteErr } =
  processBinding('stream_wrap') as {
    streamBaseState: Int32Array
    kReadBytesOrError: number
    kArrayBufferOffset: number
    kBytesWritten: number
    /** Of Node 26. */
    kLastWriteErr?: number
  }

type Names = readonly [own: SocketName, peer: SocketName]

/** What a connect(2) comes to: a connection, or the error code of libuv. */
export type DialledTcp = { readonly tcp: SimulatedTcp; readonly names: Names } | { readonly errno: number }

/** Calls a place; returns what gives it up. */
export type Dial = (place: string, handle: (dialled: DialledTcp) => void) => () => void

/** One read of libuv, and reads within one callback of its poll phase (uv__read). */
const READ_MAX = 64 * 1024
const READS_MAX = 32
/** Of node:_http_agent. */
const AGENT_GUARD = 'freeSocketOnReadGuard'

export class SimulatedTcpHandle {
  reading = false
  bytesRead = 0
  bytesWritten = 0
  writeQueueSize = 0
  readonly fd = -1
  /** No native stream: the parser of http gets the bytes from the socket. */
  readonly isStreamBase = false
  #onread: ReadListener | undefined
  #wantsData = false
  #isClosed = false
  readonly #writes: { readonly request: Request; bytes: Uint8Array }[] = []
  #shutdown: Request | undefined
  /** Undefined before it is connected. */
  #tcp!: SimulatedTcp
  #names: Names = [{}, {}]
  readonly #closingPhase: ClosingPhase
  readonly #dial: Dial | undefined
  #giveUp: () => void = () => {}

  /** `dial`: of a handle that is not connected yet. */
  constructor(closingPhase: ClosingPhase, dial?: Dial) {
    this.#closingPhase = closingPhase
    this.#dial = dial
  }

  /** A handle of a connection. */
  static of(tcp: SimulatedTcp, names: Names, closingPhase: ClosingPhase): SimulatedTcpHandle {
    const handle = new SimulatedTcpHandle(closingPhase)
    handle.#begin(tcp, names)
    return handle
  }

  /** As TCPWrap and PipeWrap: `address` is a path, if there is no port. */
  connect(request: Request, address: string, port?: number): number {
    const place = port === undefined ? address : `${address}:${port}`
    this.#giveUp = (this.#dial as Dial)(place, dialled => {
      if (this.#isClosed) return
      if ('errno' in dialled) request.oncomplete?.(dialled.errno, this, request, true, true)
      else {
        this.#begin(dialled.tcp, dialled.names)
        request.oncomplete?.(0, this, request, true, true)
      }
      drainTicks()
    })
    return 0
  }

  #begin(tcp: SimulatedTcp, names: Names): void {
    this.#tcp = tcp
    this.#names = names
    tcp.onChange = () => this.#handleChange()
  }

  readStart(): number {
    if (this.#wantsData) return 0
    this.#wantsData = true
    if (this.#tcp?.isReadable === true) this.#tcp.host.post(0, () => this.#handleChange())
    return 0
  }

  readStop(): number {
    this.#wantsData = false
    return 0
  }

  writeBuffer(request: Request | null, bytes: Uint8Array): number | Request {
    return this.#writeAll(request, [bytes])
  }

  writeUtf8String(request: Request | null, text: string): number | Request {
    return this.#writeAll(request, [Buffer.from(text)])
  }

  writeLatin1String(request: Request | null, text: string): number | Request {
    return this.#writeAll(request, [Buffer.from(text, 'latin1')])
  }

  /** Without buffers alone: each piece, and its encoding behind it. */
  writev(request: Request | null, pieces: readonly unknown[], areBuffers: boolean): number | Request {
    if (areBuffers) return this.#writeAll(request, pieces as Uint8Array[])
    const buffers: Uint8Array[] = []
    for (let i = 0; i < pieces.length; i += 2) {
      const piece = pieces[i] as string | Uint8Array
      buffers.push(typeof piece === 'string' ? Buffer.from(piece, pieces[i + 1] as BufferEncoding) : piece)
    }
    return this.#writeAll(request, buffers)
  }

  /** As uv_try_write, then uv_write of the rest. Node 26 passes no request, and gets one if the write goes on. */
  #writeAll(request: Request | null, buffers: readonly Uint8Array[]): number | Request {
    const bytes = Buffer.concat(buffers)
    const sent = this.#writes.length === 0 ? this.#tcp.send(bytes) : 0
    if (sent === 0 && this.#tcp.state !== 'open') return UV_EPIPE
    this.bytesWritten += bytes.length
    streamBaseState[kBytesWritten] = bytes.length
    const isAsync = sent < bytes.length
    noteLastWrite(isAsync)
    if (kLastWriteErr !== undefined) streamBaseState[kLastWriteErr] = 0
    if (!isAsync) return 0
    const made = request ?? { writeStatus: null }
    this.#writes.push({ request: made, bytes: bytes.subarray(sent) })
    this.writeQueueSize += bytes.length - sent
    return request === null ? made : 0
  }

  shutdown(request: Request): number {
    this.#shutdown = request
    this.#tcp.host.post(0, () => this.#finishShutdown())
    return 0
  }

  /** Nothing of what waits here arrives. */
  reset(callback?: () => void): number {
    this.#tcp.reset()
    this.close(callback)
    return 0
  }

  close(callback?: () => void): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#wantsData = false
    this.#giveUp()
    this.#tcp?.close()
    this.#closingPhase.add(() => {
      for (const { request } of this.#writes.splice(0)) this.#complete(request, UV_ECANCELED)
      const shutdown = this.#shutdown
      this.#shutdown = undefined
      if (shutdown !== undefined) this.#complete(shutdown, UV_ECANCELED)
      callback?.call(this)
    })
  }

  getsockname(out: SocketName): number {
    Object.assign(out, this.#names[0])
    return 0
  }

  getpeername(out: SocketName): number {
    Object.assign(out, this.#names[1])
    return 0
  }

  /** That of no asynchronous context. */
  getAsyncId(): number {
    return 0
  }

  /** Of the agent of http, which gives a connection to another request. */
  asyncReset(): void {}

  getProviderType(): number {
    return 0
  }

  get onread(): ReadListener | undefined {
    return this.#onread
  }

  /** Without the listener by which the agent of Node 26 watches kept connections, which it would close earlier than other versions. */
  set onread(listener: ReadListener | undefined) {
    if (listener?.name !== AGENT_GUARD) this.#onread = listener
  }

  /** Of Node 26, for the same agent: false, so that it uses kept connections as other versions do. */
  hasPendingRead(): boolean {
    return false
  }

  setNoDelay(): number {
    return 0
  }

  setKeepAlive(): number {
    return 0
  }

  hasRef(): boolean {
    return true
  }

  ref(): void {}

  unref(): void {}

  #handleChange(): void {
    if (this.#isClosed) return
    this.#read()
    this.#write()
    this.#finishShutdown()
  }

  #read(): void {
    for (let left = READS_MAX; left > 0 && this.#wantsData && !this.#isClosed; left--) {
      const bytes = this.#tcp.receive(READ_MAX)
      if (bytes === undefined && this.#tcp.state !== 'reset') return
      if (bytes === undefined || bytes.length === 0) {
        this.#wantsData = false
        streamBaseState[kReadBytesOrError] = bytes === undefined ? UV_ECONNRESET : UV_EOF
        this.#onread?.call(this, undefined)
      } else {
        this.bytesRead += bytes.length
        streamBaseState[kReadBytesOrError] = bytes.length
        streamBaseState[kArrayBufferOffset] = 0
        this.#onread?.call(this, new Uint8Array(bytes).buffer)
      }
      this.#settle()
    }
    // epoll reports what is left once more.
    if (this.#wantsData && this.#tcp.isReadable) this.#tcp.host.post(0, () => this.#handleChange())
  }

  #write(): void {
    for (let first = this.#writes[0]; first !== undefined; first = this.#writes[0]) {
      const hasFailed = this.#tcp.state !== 'open'
      const sent = this.#tcp.send(first.bytes)
      first.bytes = first.bytes.subarray(sent)
      this.writeQueueSize -= sent
      if (first.bytes.length > 0 && !hasFailed) return
      this.#writes.shift()
      this.writeQueueSize -= first.bytes.length
      this.#complete(first.request, hasFailed ? UV_ECONNRESET : 0)
    }
  }

  #finishShutdown(): void {
    const request = this.#shutdown
    if (request === undefined || this.#writes.length > 0 || this.#isClosed) return
    this.#shutdown = undefined
    if (this.#tcp.state === 'open') this.#tcp.shutdown()
    this.#complete(request, 0)
  }

  #complete(request: Request, status: number): void {
    request.oncomplete?.(status)
    this.#settle()
  }

  /** As Node does after each callback of libuv. */
  #settle(): void {
    this.#tcp.host.timeline.hasSettled = true
    drainTicks()
  }
}

// The product finds it by `instanceof`.
const { Tcp } = nodeInternals() ?? {}
Object.setPrototypeOf(SimulatedTcpHandle.prototype, (Tcp as { prototype: object }).prototype)
