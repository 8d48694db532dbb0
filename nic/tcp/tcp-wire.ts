/**
 * One kernel TCP connection. A socket of Node owns its descriptor, so that the end of a thread closes it, but does not
 * read while this program polls: bytes are moved by non-blocking send(2) and recv(2). Only while the doorbell is armed
 * does Node read, in its event loop.
 */
import { AsyncResource } from 'node:async_hooks'
import net from 'node:net'
import { makeHidden } from '../own-resources.ts'
import { markOwn } from '../own-sockets.ts'
import { performance } from '../performance.ts'
import { EAGAIN, EINTR, MSG_DONTWAIT, MSG_MORE, MSG_NOSIGNAL, SHUT_WR, SIOCOUTQ } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { setTimeout } from '../real-time.ts'
import { limitSilence } from './silence.ts'

/** Bytes of one read by Node; all connections of this thread share the buffer. */
const READ_MAX = 64 * 1024
const received = Buffer.alloc(READ_MAX)
/** Longest time that a closed connection waits for the peer's kernel, and the interval between two looks. */
const LINGER_MS_MAX = 1000
const LINGER_STEP_MS = 5
/** Reads of one look that discard what the peer still sends. */
const DISCARDS_MAX = 64
/** A FIN counts as one byte of the send queue. */
const FIN_SIZE = 1
/** Results of `send` and `receive` beside a number of bytes; other negative ones are errno values. */
export const WOULD_WAIT = -EAGAIN

const value = Buffer.alloc(4)
/** A connection neither runs in a program's asynchronous context nor keeps one alive. */
const rootScope = new AsyncResource('FASTSOCKETSTCP')

export interface WireOwner {
  /** Node has read these bytes, valid during the call. */
  handleRead(bytes: Uint8Array, length: number): void
  /** The stream has ended or failed: `receive` says which. */
  handleOver(): void
}

type SocketOptions = net.SocketConstructorOpts & net.ConnectOpts

interface StreamHandle {
  reading: boolean
  readStart(): number
  readStop(): number
}

class WireSocket extends net.Socket {
  onOver: (error: NodeJS.ErrnoException | null) => void = () => {}

  /** Called before Node closes the descriptor, whose number may belong to another connection afterwards. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.onOver(error)
    super._destroy(error, done)
  }
}

export class TcpWire {
  /** -1 once Node has closed the descriptor. */
  fd: number
  readonly #libc: Libc
  readonly #socket: WireSocket
  readonly #handle: StreamHandle
  #owner: WireOwner | undefined
  #errno = 0
  #lingersUntilMs = 0

  /** Owns `fd`, a connected socket, from now on. */
  constructor(libc: Libc, fd: number, peerTimeoutMs: number) {
    this.#libc = libc
    this.fd = fd
    limitSilence(libc, fd, peerTimeoutMs)
    const onread = { buffer: received, callback: this.#handleRead }
    const options = { fd, allowHalfOpen: true, onread } satisfies SocketOptions
    this.#socket = rootScope.runInAsyncScope(() => makeHidden(() => new WireSocket(options)))
    markOwn(this.#socket)
    this.#socket.setNoDelay(true)
    this.#socket.pause()
    this.#socket.unref()
    this.#socket.onOver = error => this.#end(error)
    this.#socket.on('end', () => this.#owner?.handleOver())
    this.#socket.on('error', () => {})
    this.#handle = (this.#socket as unknown as { _handle: StreamHandle })._handle
  }

  set owner(owner: WireOwner | undefined) {
    this.#owner = owner
  }

  /** Sends as much of `bytes[from … to)` as the kernel takes; returns how much, or a negative errno. `isMore`: more follows at once. */
  send(bytes: Uint8Array, from: number, to: number, isMore = false): number {
    if (this.fd < 0) return this.#errno
    const part = from === 0 ? bytes : bytes.subarray(from)
    const flags = MSG_DONTWAIT | MSG_NOSIGNAL | (isMore ? MSG_MORE : 0)
    const count = this.#libc.send(this.fd, part, to - from, flags)
    return count < 0 ? this.#failure() : count
  }

  /** Reads up to `length` bytes to `into[at …)`; returns how many, 0 at the end of the stream, or a negative errno. */
  receive(into: Uint8Array, at: number, length: number): number {
    if (this.fd < 0) return this.#errno
    const count = this.#libc.recv(this.fd, at === 0 ? into : into.subarray(at), length, MSG_DONTWAIT)
    return count < 0 ? this.#failure() : count
  }

  /** From now on Node reads from the event loop, and passes what it reads to the owner. */
  listen(): void {
    if (this.fd < 0 || this.#handle.reading) return
    this.#handle.reading = true
    this.#handle.readStart()
  }

  hush(): void {
    if (this.fd < 0 || !this.#handle.reading) return
    this.#handle.reading = false
    this.#handle.readStop()
  }

  ref(): void {
    if (this.fd >= 0) this.#socket.ref()
  }

  unref(): void {
    if (this.fd >= 0) this.#socket.unref()
  }

  /**
   * Sends `rest`, then the end of the stream. Keeps the descriptor until the peer's kernel has acknowledged everything:
   * bytes that arrive at a closed descriptor would make the kernel reset the connection, and drop what is on its way.
   */
  close(rest: Uint8Array): void {
    this.hush()
    this.#owner = undefined
    this.#lingersUntilMs = performance.now() + LINGER_MS_MAX
    this.#linger(Buffer.from(rest), false)
  }

  #linger(rest: Uint8Array, hasEnded: boolean): void {
    let left = rest
    while (left.length > 0) {
      const sent = this.send(left, 0, left.length)
      if (sent === WOULD_WAIT) break
      left = sent < 0 ? left.subarray(left.length) : left.subarray(sent)
    }
    const isEnding = left.length === 0
    if (isEnding && !hasEnded && this.fd >= 0) this.#libc.shutdown(this.fd, SHUT_WR)
    const isOver = this.#discard() || (isEnding && this.#unacknowledged() <= FIN_SIZE)
    if (isOver || performance.now() >= this.#lingersUntilMs) return void this.#socket.destroy()
    const timer = setTimeout(() => this.#linger(left, isEnding), LINGER_STEP_MS)
    // The kernel delivers what it has; the rest would be lost with the process.
    if (isEnding) timer.unref()
  }

  /** Drops what has arrived; true if nothing more will. */
  #discard(): boolean {
    for (let reads = 0; reads < DISCARDS_MAX; reads++) {
      const count = this.receive(received, 0, received.length)
      if (count <= 0) return count !== WOULD_WAIT
    }
    return false
  }

  #unacknowledged(): number {
    return this.#libc.ioctl(this.fd, SIOCOUTQ, value) < 0 ? 0 : value.readInt32LE()
  }

  #failure(): number {
    const errno = this.#libc.errno()
    return errno === EINTR ? WOULD_WAIT : -errno
  }

  readonly #handleRead = (length: number): boolean => {
    this.#owner?.handleRead(received, length)
    return true
  }

  #end(error: NodeJS.ErrnoException | null): void {
    this.fd = -1
    this.#errno = -Math.abs(error?.errno ?? 0)
    this.#owner?.handleOver()
  }
}
