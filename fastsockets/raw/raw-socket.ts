import type { Transport } from '../handle/transport.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import type { MessageSocket } from './message-socket.ts'

/** Operations of one socket that may wait, each way. One more fails with ENOBUFS. */
export const OPERATIONS_MAX = 1024

/**
 * A byte stream each way, as of TCP, without events and intermediate buffers; the same over shared memory and over TCP.
 * Errors are those of `node:net`: `ECONNRESET`, `EPIPE`, `EBADF` once closed, `ECANCELED` for operations that `close`
 * ended. Source: Fast Sockets 1997, sections 3.2 to 3.5; receive posting is section 3.3.
 */
export interface RawSocket {
  /** The transport, the reason if it is TCP, and the bytes each way. */
  readonly transport: Transport
  /**
   * The next `tryRecv` would return at once: data, the end, or an error. Only a peer that closes may take back what it has
   * offered: then there is nothing yet.
   */
  readonly isReadable: boolean

  /** Sends all of `bytes`; resolves with their number when they may be reused. Sends leave in the order of the calls. */
  send(bytes: Uint8Array): Promise<number>
  /**
   * Sends as much of `bytes` as fits now, and returns the number of bytes sent, perhaps 0. `bytes` may be reused on
   * return. Never waits; allocates nothing, except a copy if the C library cannot be used.
   */
  trySend(bytes: Uint8Array): number
  /**
   * Posts `into`, which belongs to the socket until the promise settles: until then its ArrayBuffer must not be
   * transferred or resized. The next bytes to arrive are copied straight into it; large amounts the peer copies itself.
   * Resolves with the number of bytes, at least 1; with 0 at the end of the stream.
   */
  recv(into: Uint8Array): Promise<number>
  /**
   * Reads bytes that have arrived: returns their number, 0 at the end, undefined if there are none now. Never waits,
   * allocates nothing, and needs no event loop. Posted receives come first: while there are any, the result is
   * undefined.
   */
  tryRecv(into: Uint8Array): number | undefined
  /** Ends this side's stream after the bytes already sent. The other side may go on sending. */
  shutdown(): void
  /**
   * As close(2): bytes already sent still arrive; unread bytes turn it into a reset. Operations that wait are canceled.
   */
  close(): void
  /**
   * Closes with a reset: bytes that the other side has not read are lost to it (`ECONNRESET`). Over TCP no TIME_WAIT
   * follows.
   */
  reset(): void
}

/** The completion queue, as far as its members use it. */
export interface ReadinessQueue {
  /** There may be something to read. */
  handleReadable(member: Pollable): void
  /** The member was closed. */
  remove(member: RawSocket | MessageSocket | Pollable): void
}

/** The part of a member that a completion queue uses. */
export interface Pollable {
  readonly isReadable: boolean
  readonly isClosed: boolean
  /**
   * The channel to poll, if there is one. No getter: a program that prints the socket must not reach the runtime's
   * objects.
   */
  polledChannel(): SocketChannel | undefined
  /** Looks for arrived data itself, without the event loop. */
  look(): void
  /**
   * From now on the member calls `queue.handleReadable` whenever there may be something to read; undefined: no queue.
   */
  watch(queue: ReadinessQueue | undefined): void
  /** While awaited by a `wait`, the member keeps the program alive. */
  setAwaited(isAwaited: boolean): void
}

/** An empty buffer would make 0 bytes ambiguous: data or the end. */
export function assertReceiveBuffer(into: Uint8Array): void {
  if (into instanceof Uint8Array && into.length > 0) return
  const error = new TypeError('a receive needs a Uint8Array that is not empty')
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
}

/** Options are always an object, never a bare address or port. */
export function assertOptions(options: unknown): void {
  if (typeof options === 'object' && options !== null) return
  throw Object.assign(new TypeError('options must be an object'), { code: 'ERR_INVALID_ARG_TYPE' })
}

export function assertSignal(signal: unknown): void {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw Object.assign(new TypeError('signal must be an AbortSignal'), { code: 'ERR_INVALID_ARG_TYPE' })
}

export function assertBytes(bytes: Uint8Array): void {
  if (bytes instanceof Uint8Array) return
  throw Object.assign(new TypeError('bytes must be a Uint8Array'), { code: 'ERR_INVALID_ARG_TYPE' })
}

/**
 * Makes the getters of a class return `undefined` for objects that are no instances: programs that print, copy or
 * compare objects call getters on the prototype, and on copies without private fields.
 */
export function forgiveGetters(prototype: object, isOne: (object: object) => boolean): void {
  for (const [name, { get, ...rest }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (get === undefined) continue
    const forgiving = function (this: object): unknown {
      return isOne(this) ? get.call(this) : undefined
    }
    const { enumerable = false, configurable = true } = rest
    Object.defineProperty(prototype, name, { get: forgiving, enumerable, configurable })
  }
}
