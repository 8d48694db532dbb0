/**
 * The unix connection of a handoff, kept open as the doorbell of both interfaces. Ringing sends one byte; Node's event
 * loop watches for it. Each side made its own end by connect or accept, so the peer's operations on its descriptor do
 * not affect ours. The kernel ends the connection when either process ends for any reason. When a worker thread is
 * terminated none of our code runs there, but Node closes the worker's end.
 */
import { AsyncResource } from 'node:async_hooks'
import net from 'node:net'
import { makeHidden } from '../own-resources.ts'
import { markOwn } from '../own-sockets.ts'
import { MSG_DONTWAIT, MSG_NOSIGNAL, POLLRDHUP } from './constants.ts'
import type { Libc } from './libc.ts'

/** Bytes of one read. libuv reads at most 32 times in an iteration, which bounds the cost of a flood of rings. */
const READ_MAX = 4096
/** Read buffer shared by all doorbells of this thread: the bytes have no meaning. */
const received = Buffer.alloc(READ_MAX)
const RING = Buffer.of(1)
/** struct pollfd: fd 0, events 4, revents 6. */
const POLLED = Buffer.alloc(8)

/** Made while this module loads: a doorbell neither runs in a program's asynchronous context nor keeps one alive. */
const rootScope = new AsyncResource('FASTSOCKETSDOORBELL')

/** Receives the first `length` bytes of `bytes`, valid only during the call. 0: the connection has ended. */
export type DoorbellListener = (bytes: Buffer, length: number) => void

/** The typings of Node list `onread` among the options of `connect` only. */
type SocketOptions = net.SocketConstructorOpts & net.ConnectOpts

export class Doorbell {
  /** The connection's descriptor, for system calls that Node does not offer. Valid while `isOpen`. */
  readonly fd: number
  readonly #libc: Libc
  readonly #socket: net.Socket
  #listener: DoorbellListener | undefined

  /** Owns `fd`, connected and non-blocking, from now on. The peer's bytes wait in the kernel until `watch`. */
  constructor(libc: Libc, fd: number) {
    this.fd = fd
    this.#libc = libc
    const options = { fd, writable: false, onread: this.#reader() } satisfies SocketOptions
    this.#socket = rootScope.runInAsyncScope(() => makeHidden(() => new net.Socket(options)))
    markOwn(this.#socket)
    this.#socket.pause()
    this.#socket.unref()
    // The kernel resets the connection if the peer closes with unread bytes: treated as an end.
    this.#socket.on('error', this.#handleEnd)
    // libuv closes handles only after it has reported other processes' exits: 'close' alone would be too late.
    this.#socket.on('end', this.#handleEnd)
    this.#socket.on('close', this.#handleEnd)
  }

  /** False once either side has ended the connection. The kernel may have reused the number `fd` by then. */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** As `isOpen`, asked from the kernel, which knows of the end before the event loop reports it. */
  get hasPeer(): boolean {
    if (!this.isOpen) return false
    POLLED.writeInt32LE(this.fd, 0)
    POLLED.writeInt16LE(POLLRDHUP, 4)
    // Negative: a signal came, as a profiler sends them (EINTR of poll(2), even without a time-out).
    return this.#libc.poll(POLLED, 1, 0) <= 0
  }

  /** Calls `listener` from the event loop for every read and for the end. Replaces an earlier listener. */
  watch(listener: DoorbellListener): void {
    this.#listener = listener
    if (this.isOpen) this.#socket.resume()
  }

  /** Wakes the peer. Ignores errors: EAGAIN means that unread rings wait, any other that the connection has ended. */
  ring(): void {
    if (this.isOpen) this.#libc.send(this.fd, RING, 1, MSG_DONTWAIT | MSG_NOSIGNAL)
  }

  ref(): void {
    if (this.isOpen) this.#socket.ref()
  }

  unref(): void {
    if (this.isOpen) this.#socket.unref()
  }

  close(): void {
    this.#listener = undefined
    this.#socket.destroy()
  }

  readonly #handleEnd = (): void => {
    const listener = this.#listener
    this.close()
    listener?.(received, 0)
  }

  #reader(): net.OnReadOpts {
    return {
      buffer: received,
      callback: length => {
        this.#listener?.(received, length)
        return true
      },
    }
  }
}
