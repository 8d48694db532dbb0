import type { Transport } from '../handle/transport.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import type { CompletionQueue } from './completion-queue.ts'

/** Operations of one socket that wait, each way. One more fails with ENOBUFS. */
export const OPERATIONS_MAX = 1024

/**
 * A byte stream each way, as of TCP, without events and without buffers in between. The same over shared memory and over
 * TCP. Errors are those of `node:net` (`ECONNRESET`, `EPIPE`, `EBADF` once closed, `ECANCELED` for what `close` cut short).
 * Source: Fast Sockets 1997, sections 3.2 to 3.5; receive posting is section 3.3.
 */
export interface RawSocket {
  /** Which wire it is, why it is not a fast one if it is not, and bytes each way. */
  readonly transport: Transport
  /** The next `tryRecv` would return at once: data, the end, or an error. */
  readonly isReadable: boolean

  /** Sends all of `bytes`; resolves with their number when they may be reused. Sends leave in the order of the calls. */
  send(bytes: Uint8Array): Promise<number>
  /**
   * Sends as much of `bytes` as goes out now, and returns how much: 0 if nothing does. They may be reused on return.
   * Never waits, allocates nothing, but for a copy where the C library is not to be had.
   */
  trySend(bytes: Uint8Array): number
  /**
   * Posts `into`, which belongs to the socket until the promise settles: the next bytes to arrive are copied straight to
   * it, by the peer itself if they are many. Until then its ArrayBuffer must not be transferred or resized. Resolves with their number, at least 1; 0 at the end of the stream.
   */
  recv(into: Uint8Array): Promise<number>
  /**
   * Takes what has arrived: a number of bytes, 0 at the end, undefined if there is nothing now. Never waits, allocates
   * nothing, and needs no event loop. Receives that are posted come first: while there are any, it is undefined.
   */
  tryRecv(into: Uint8Array): number | undefined
  /** Ends this side's stream, after what was sent. The other side can go on. */
  shutdown(): void
  /** As close(2): what was sent arrives all the same; with bytes unread it is a reset. Operations that wait are cut short. */
  close(): void
  /** Closes with a reset: what the other side has not read is lost to it (`ECONNRESET`), and over TCP no port waits for stragglers. */
  reset(): void
}

/** What a completion queue asks of its members besides. */
export interface Pollable {
  readonly isReadable: boolean
  readonly isClosed: boolean
  /** The channel to poll, if it is one. No getter: what prints a socket must not meet the runtime. */
  polledChannel(): SocketChannel | undefined
  /** Looks for itself whether something has arrived, without the event loop. */
  look(): void
  /** Tells `queue` from now on whenever there may be something to read; undefined: nobody. */
  watch(queue: CompletionQueue | undefined): void
  /** Whether somebody waits for this member, for whom the program stays alive. */
  hold(isHeld: boolean): void
}

/** A receive of no length could not tell the end. */
export function assertReceiveBuffer(into: Uint8Array): void {
  if (into instanceof Uint8Array && into.length > 0) return
  const error = new TypeError('a receive needs a Uint8Array that is not empty')
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
}

/** What everything here is told by: an object, and not an address or a port by itself. */
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
 * Makes the getters of a class answer `undefined` for objects that are not of it: programs that print, copy or compare
 * objects read them from the prototype, and from copies without private fields.
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
