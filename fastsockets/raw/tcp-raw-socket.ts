import type net from 'node:net'
import { constants } from 'node:os'
import { canMoveNow, receiveNow, sendNow, shutdownNow } from '../../nic/index.ts'
import type { Transport } from '../handle/transport.ts'
import { systemError } from '../host/socket-errors.ts'
import type { FallbackReason } from '../reasons.ts'
import { hideTcp } from '../status/tcp-rows.ts'
import { Operations } from './operations.ts'
import {
  assertBytes,
  assertReceiveBuffer,
  forgiveGetters,
  OPERATIONS_MAX,
  type Pollable,
  type RawSocket,
  type ReadinessQueue,
} from './raw-socket.ts'

const { EAGAIN, EPIPE, ETIMEDOUT } = constants.errno

function codeOf(errno: number): 'EPIPE' | 'ETIMEDOUT' | 'ECONNRESET' {
  if (errno === -EPIPE) return 'EPIPE'
  return errno === -ETIMEDOUT ? 'ETIMEDOUT' : 'ECONNRESET'
}
/** The most bytes that `look` reads from the kernel at once. */
const LOOK_SIZE = 16 * 1024
/** Receives the bytes of each `look` of this thread; `look` copies them out at once. */
const LOOKED = Buffer.allocUnsafeSlow(LOOK_SIZE)

/**
 * A raw socket over TCP. Promises use Node's own stream; `trySend` and `tryRecv` ask the kernel directly, because a
 * program that polls may not let the event loop run. Bytes that Node has already read come first, so that the order
 * holds. Where the C library cannot be used, there is only Node's stream.
 */
export class TcpRawSocket implements RawSocket, Pollable {
  static {
    forgiveGetters(TcpRawSocket.prototype, object => #socket in object)
  }

  readonly #socket: net.Socket
  readonly #reason: FallbackReason
  readonly #receives = new Operations()
  #sendCount = 0
  /** Writes of `trySend` whose callback Node has not called yet. */
  #copyCount = 0
  #queue: ReadinessQueue | undefined
  #state: 'open' | 'shutdown' | 'closed' = 'open'
  #hasEnded = false
  #failure: Error | undefined
  #isAwaited = false
  /** Bytes that `look` has read and the program has not. */
  #looked: Buffer | undefined
  #bytesIn = 0
  #bytesOut = 0

  /** Takes over a connected socket, which allows half-open connections. */
  constructor(socket: net.Socket, reason: FallbackReason) {
    this.#socket = socket
    this.#reason = reason
    socket.setNoDelay(true)
    socket.on('readable', () => this.#advance())
    socket.on('end', () => this.#handleEnd())
    socket.on('close', () => {
      hideTcp(socket)
      this.#handleEnd()
    })
    socket.on('error', error => this.#fail(error))
    this.#updateLife()
  }

  polledChannel(): undefined {}

  get transport(): Transport {
    return {
      transport: 'tcp',
      reason: this.#reason,
      bytesIn: this.#socket.bytesRead + this.#bytesIn,
      bytesOut: this.#socket.bytesWritten + this.#bytesOut,
    }
  }

  get isReadable(): boolean {
    return (
      this.#looked !== undefined ||
      this.#socket.readableLength > 0 ||
      this.#hasEnded ||
      this.#failure !== undefined
    )
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  /** `head`: bytes to send before, in the same call of the kernel if possible. */
  send(bytes: Uint8Array, head?: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      assertBytes(bytes)
      this.#assertMaySend()
      if (this.#sendCount >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'write')
      const { length } = bytes
      this.#sendCount++
      this.#updateLife()
      if (head !== undefined) {
        this.#socket.cork()
        this.#socket.write(head)
      }
      this.#socket.write(bytes, error => {
        this.#sendCount--
        this.#updateLife()
        if (this.#state === 'closed') reject(systemError('ECANCELED', 'write'))
        // If reading has failed, Node calls back without an error, or with another one.
        else if (this.#socket.destroyed) reject(systemError('ECONNRESET', 'write', error ?? undefined))
        else if (error) reject(error)
        else resolve(length)
      })
      if (head !== undefined) this.#socket.uncork()
    })
  }

  trySend(bytes: Uint8Array): number {
    assertBytes(bytes)
    this.#assertMaySend()
    if (this.#socket.writableLength > 0 || bytes.length === 0) return 0
    if (!canMoveNow()) return this.writeCopy(bytes)
    const { fd } = this
    const sent = fd === undefined ? -EPIPE : sendNow(fd, bytes)
    if (sent >= 0) {
      this.#bytesOut += sent
      return sent
    }
    if (sent !== -EAGAIN) throw systemError(codeOf(sent), 'write')
    return 0
  }

  recv(into: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      assertReceiveBuffer(into)
      this.#assertOpen('read')
      if (this.#receives.waiting.length >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'read')
      const count = this.#receives.waiting.length === 0 ? this.#read(into) : undefined
      if (count !== undefined) return resolve(count)
      this.#receives.add(into).then(resolve, reject)
      this.#updateLife()
    })
  }

  tryRecv(into: Uint8Array): number | undefined {
    assertReceiveBuffer(into)
    this.#assertOpen('read')
    if (this.#receives.waiting.length > 0) return undefined
    return this.#read(into) ?? this.#receive(into)
  }

  /** The kernel accepts the copy at once, or libuv writes it in later iterations, even if the socket is closed. */
  writeCopy(bytes: Uint8Array): number {
    this.#copyCount++
    this.#socket.write(Buffer.from(bytes), () => {
      this.#copyCount--
    })
    return bytes.length
  }

  shutdown(): void {
    if (this.#state !== 'open') return
    this.#state = 'shutdown'
    // `end` needs the event loop: a program that polls may not let it run.
    if (this.#sendCount === 0 && this.fd !== undefined) shutdownNow(this.fd)
    this.#socket.end()
  }

  close(isReset = false): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#receives.failAll(systemError('ECANCELED', 'read'))
    // The kernel counts bytes that Node has read as read by the program, and would send no reset for them.
    if (isReset || this.#looked !== undefined || this.#socket.readableLength > 0)
      this.#socket.resetAndDestroy()
    else if (this.#copyCount > 0 && this.#socket.writableLength > 0) this.#socket.destroySoon()
    else this.#socket.destroy()
    this.#queue?.remove(this)
  }

  reset(): void {
    this.close(true)
  }

  look(): void {
    if (this.isReadable || this.#receives.waiting.length > 0) return
    const length = this.#receive(LOOKED, false)
    if (length !== undefined && length > 0) this.#looked = Buffer.from(LOOKED.subarray(0, length))
    if (this.isReadable) this.#queue?.handleReadable(this)
  }

  watch(queue: ReadinessQueue | undefined): void {
    this.#queue = queue
    if (this.isReadable) queue?.handleReadable(this)
  }

  setAwaited(isAwaited: boolean): void {
    this.#isAwaited = isAwaited
    this.#updateLife()
  }

  /** Undefined once Node has closed the handle. */
  get fd(): number | undefined {
    const fd = (this.#socket as unknown as { _handle?: { fd: number } | null })._handle?.fd
    return fd === undefined || fd < 0 ? undefined : fd
  }

  #advance(): void {
    for (
      let first = this.#receives.firstFillable;
      first !== undefined;
      first = this.#receives.firstFillable
    ) {
      const count = this.#read(first.bytes)
      if (count === undefined) break
      first.done = count
      this.#receives.finishFirst()
    }
    this.#updateLife()
    if (this.isReadable) this.#queue?.handleReadable(this)
  }

  /** Reads bytes that Node or `look` has read, or reports how the stream has ended; undefined if neither. */
  #read(into: Uint8Array): number | undefined {
    const chunk = this.#looked ?? this.#readNode(into.length)
    if (chunk === undefined) return this.#ending()
    const count = Math.min(chunk.length, into.length)
    into.set(count === chunk.length ? chunk : chunk.subarray(0, count))
    if (this.#looked !== undefined) this.#looked = count === chunk.length ? undefined : chunk.subarray(count)
    return count
  }

  #readNode(length: number): Buffer | undefined {
    const socket = this.#socket
    const { readableLength } = socket
    if (readableLength === 0) return undefined
    const chunk = socket.read(Math.min(length, readableLength)) as Buffer | null
    // Node emits 'end' only after a read that asks for more than the buffered bytes.
    if (socket.readableLength === 0) socket.read(0)
    return chunk ?? undefined
  }

  /** Reads from the kernel now. */
  #receive(into: Uint8Array, mayThrow = true): number | undefined {
    const { fd } = this
    if (fd === undefined) return undefined
    const length = receiveNow(fd, into)
    if (length > 0) {
      this.#bytesIn += length
      return length
    }
    if (length === -EAGAIN) return undefined
    if (length === 0) this.#hasEnded = true
    else this.#failure = systemError(codeOf(length), 'read')
    return mayThrow ? this.#ending() : undefined
  }

  #ending(): number | undefined {
    if (this.#failure !== undefined) throw this.#failure
    return this.#hasEnded ? 0 : undefined
  }

  #handleEnd(): void {
    this.#hasEnded = true
    this.#receives.finishAll()
    this.#updateLife()
    this.#queue?.handleReadable(this)
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#receives.failAll(error)
    this.#updateLife()
    this.#queue?.handleReadable(this)
  }

  #assertOpen(syscall: 'read' | 'write'): void {
    if (this.#state === 'closed') throw systemError('EBADF', syscall)
  }

  #assertMaySend(): void {
    this.#assertOpen('write')
    if (this.#state === 'shutdown' || this.#socket.destroyed) throw systemError('EPIPE', 'write')
  }

  /** Operations that wait keep the program alive; idle connections do not. */
  #updateLife(): void {
    if (this.#receives.waiting.length > 0 || this.#sendCount > 0 || this.#isAwaited) this.#socket.ref()
    else this.#socket.unref()
  }
}
