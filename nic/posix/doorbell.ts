/**
 * The unix connection over which two interfaces were handed over, kept open as their doorbell: to ring is to send a
 * byte, and Node itself watches for one. Each side has made its own end, by connect or by accept, so nothing that the
 * peer does to its descriptor reaches ours. The kernel ends the connection when either side is gone, however it went,
 * and Node closes our end when a worker thread is terminated, which runs no code of ours.
 */
import { AsyncResource } from 'node:async_hooks'
import net from 'node:net'
import { makeHidden } from '../own-resources.ts'
import { markOwn } from '../own-sockets.ts'
import { MSG_DONTWAIT, MSG_NOSIGNAL, POLLRDHUP } from './constants.ts'
import type { Libc } from './libc.ts'

/** Bytes taken in one look. libuv looks at most 32 times a turn, so a flood of rings costs no more than that. */
const READ_MAX = 4096
/** What every doorbell of this thread is read into: rings have no content. */
const heard = Buffer.alloc(READ_MAX)
const RING = Buffer.of(1)
/** struct pollfd: fd 0, events 4, revents 6. */
const POLLED = Buffer.alloc(8)

/** Made while this module loads: a doorbell rings in nobody's asynchronous context, and keeps none alive. */
const rootScope = new AsyncResource('FASTSOCKETSDOORBELL')

/** The first `length` bytes were heard; they are valid only during the call. None: the connection has ended. */
export type DoorbellListener = (bytes: Buffer, length: number) => void

/** The typings know `onread` as an option of `connect` only. */
type SocketOptions = net.SocketConstructorOpts & net.ConnectOpts

export class Doorbell {
  /** The connection's descriptor, for system calls that Node does not have, while `isOpen`. */
  readonly fd: number
  readonly #libc: Libc
  readonly #socket: net.Socket
  #listener: DoorbellListener | undefined

  /** Takes a connected, non-blocking descriptor over. What the peer sends waits in the kernel until `watch`. */
  constructor(libc: Libc, fd: number) {
    this.fd = fd
    this.#libc = libc
    const options = { fd, writable: false, onread: this.#reader() } satisfies SocketOptions
    this.#socket = rootScope.runInAsyncScope(() => makeHidden(() => new net.Socket(options)))
    markOwn(this.#socket)
    this.#socket.pause()
    this.#socket.unref()
    // A peer that leaves bytes of ours unread resets the connection: an end like any other.
    this.#socket.on('error', this.#handleEnd)
    // libuv closes handles only after it has reported other processes' exits: 'close' alone would be too late.
    this.#socket.on('end', this.#handleEnd)
    this.#socket.on('close', this.#handleEnd)
  }

  /** False once the connection has ended, on either side. `fd` may be somebody else's then. */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** The same by the kernel, which knows it before the event loop does. */
  get hasPeer(): boolean {
    if (!this.isOpen) return false
    POLLED.writeInt32LE(this.fd, 0)
    POLLED.writeInt16LE(POLLRDHUP, 4)
    return this.#libc.poll(POLLED, 1, 0) === 0
  }

  /** Calls `listener` from the event loop for whatever comes. It takes the place of the one before. */
  watch(listener: DoorbellListener): void {
    this.#listener = listener
    if (this.isOpen) this.#socket.resume()
  }

  /** Wakes the peer. A connection that is full is ringing already; one that has ended has nobody to wake. */
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
    listener?.(heard, 0)
  }

  #reader(): net.OnReadOpts {
    return {
      buffer: heard,
      callback: length => {
        this.#listener?.(heard, length)
        return true
      },
    }
  }
}
