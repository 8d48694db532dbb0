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
  oncomplete?: (status: number) => void
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

/** One read of libuv, and reads within one callback of its poll phase (uv__read). */
const READ_MAX = 64 * 1024
const READS_MAX = 32

export class SimulatedTcpHandle {
  onread: ReadListener | undefined
  reading = false
  bytesRead = 0
  bytesWritten = 0
  writeQueueSize = 0
  readonly fd = -1
  #wantsData = false
  #isClosed = false
  readonly #writes: { readonly request: Request; bytes: Uint8Array }[] = []
  #shutdown: Request | undefined
  readonly #tcp: SimulatedTcp
  readonly #names: readonly [own: SocketName, peer: SocketName]
  readonly #closingPhase: ClosingPhase

  constructor(
    tcp: SimulatedTcp,
    names: readonly [own: SocketName, peer: SocketName],
    closingPhase: ClosingPhase,
  ) {
    this.#tcp = tcp
    this.#closingPhase = closingPhase
    this.#names = names
    tcp.onChange = () => this.#handleChange()
  }

  readStart(): number {
    if (this.#wantsData) return 0
    this.#wantsData = true
    if (this.#tcp.isReadable) this.#tcp.host.post(0, () => this.#handleChange())
    return 0
  }

  readStop(): number {
    this.#wantsData = false
    return 0
  }

  writeBuffer(request: Request | null, bytes: Uint8Array): number | Request {
    return this.writev(request, [bytes], true)
  }

  /** As uv_try_write, then uv_write of the rest. Node 26 passes no request, and gets one if the write goes on. */
  writev(request: Request | null, buffers: readonly Uint8Array[], areBuffers: boolean): number | Request {
    if (!areBuffers) throw new Error('programs here write bytes')
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
    this.#tcp.close()
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
        this.onread?.call(this, undefined)
      } else {
        this.bytesRead += bytes.length
        streamBaseState[kReadBytesOrError] = bytes.length
        streamBaseState[kArrayBufferOffset] = 0
        this.onread?.call(this, new Uint8Array(bytes).buffer)
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
