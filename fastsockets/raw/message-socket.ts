import type { Transport } from '../handle/transport.ts'
import { MESSAGE_MAX } from './message-layout.ts'

/** Returned in place of a length once the peer has ended its direction and every message was received. */
export const END = -1

/**
 * Messages each way: reliable, in order, with their boundaries, as SOCK_SEQPACKET; the same over shared memory and over
 * TCP. Both ends must be message sockets. A message has 0 to `MESSAGE_MAX` bytes. Errors are those of a raw socket, and
 * `EMSGSIZE` for a longer message, `EPROTO` if the peer is no message socket, `ECONNRESET` if it ended within a message.
 * Source: EMP 2002, sections 5.2, 6.1 and 6.2.
 */
export interface MessageSocket {
  /** The transport, the reason if it is TCP, and the bytes each way, heads included. */
  readonly transport: Transport
  /** The next `tryRecv` would return at once: a message, the end, or an error. */
  readonly isReadable: boolean

  /**
   * Sends one message. Resolves with its length when `bytes` may be reused: at once for a short message if the peer has
   * room; for a long one, which stays in `bytes` meanwhile, perhaps not before the peer receives it. Until then the
   * ArrayBuffer must not be transferred or resized. Messages leave in the order of the calls.
   */
  send(bytes: Uint8Array): Promise<number>
  /**
   * Sends one message, all of it or nothing: false if there is no room now. `bytes` may be reused on return. Never
   * waits; allocates nothing, except a copy of what has no room of a message that is longer than 32 KiB.
   */
  trySend(bytes: Uint8Array): boolean
  /**
   * Posts `into`, which belongs to the socket until the promise settles, for one message, which is copied straight into
   * it. Resolves with the message's length: if that is more than `into` holds, the message was truncated and its rest is
   * lost (MSG_TRUNC of recv(2)). Resolves with `END` after the last message.
   */
  recv(into: Uint8Array): Promise<number>
  /**
   * Receives a message that has arrived: returns its length, which may exceed that of `into` as with `recv`; `END` after
   * the last message; undefined if none is there. Never waits for one, but briefly for the rest of one that is
   * arriving. Posted receives come first.
   */
  tryRecv(into: Uint8Array): number | undefined
  /**
   * The length of the next message as soon as its head has arrived, before it is received; `END` after the last one;
   * undefined if nothing is there. Looks for it itself, as `tryRecv` does.
   */
  nextLength(): number | undefined
  /** Ends this side's direction after the messages already sent. */
  shutdown(): void
  /** As close(2): messages already sent still arrive; unreceived ones turn it into a reset. Waiting operations fail. */
  close(): void
  /** Closes with a reset: messages that the other side has not received are lost to it (`ECONNRESET`). */
  reset(): void
}

export function assertMessage(bytes: Uint8Array): void {
  if (bytes.length <= MESSAGE_MAX) return
  const error = new RangeError(
    `send EMSGSIZE: a message has at most ${MESSAGE_MAX} bytes, not ${bytes.length}`,
  )
  throw Object.assign(error, { code: 'EMSGSIZE', syscall: 'write' })
}
