import type * as net from 'node:net'
import type { FallbackReason } from '../reasons.ts'
import type { FastEnd } from './fast-end.ts'
import { FastMessageSocket } from './fast-message-socket.ts'
import { FastRawSocket } from './fast-raw-socket.ts'
import type { MessageSocket } from './message-socket.ts'
import type { Pollable, RawSocket } from './raw-socket.ts'
import { TcpMessageSocket } from './tcp-message-socket.ts'
import { TcpRawSocket } from './tcp-raw-socket.ts'

/** What the sockets of a connection are: bytes, as SOCK_STREAM, or messages, as SOCK_SEQPACKET. */
export type SocketTypeName = 'stream' | 'datagram'

/** A socket as its maker handles it. */
export type Made<S extends RawSocket | MessageSocket> = S & Pollable & { close(isReset?: boolean): void }

/** Makes sockets of one type. */
export interface SocketType<S extends RawSocket | MessageSocket> {
  makeFast(): FastEnd & Made<S>
  makeTcp(socket: net.Socket, reason: FallbackReason): Made<S>
}

const stream: SocketType<RawSocket> = {
  makeFast: () => new FastRawSocket(),
  makeTcp: (socket, reason) => new TcpRawSocket(socket, reason),
}
const datagram: SocketType<MessageSocket> = {
  makeFast: () => new FastMessageSocket(),
  makeTcp: (socket, reason) => new TcpMessageSocket(new TcpRawSocket(socket, reason)),
}

/** `stream` if undefined. Throws `ERR_INVALID_ARG_VALUE` for any other name. */
export function socketType(
  name: SocketTypeName = 'stream',
): SocketType<RawSocket> | SocketType<MessageSocket> {
  if (name === 'stream') return stream
  if (name === 'datagram') return datagram
  const error = new TypeError(`type must be 'stream' or 'datagram', not ${String(name)}`)
  throw Object.assign(error, { code: 'ERR_INVALID_ARG_VALUE' })
}
