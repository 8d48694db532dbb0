/**
 * Sockets that native code is going to read, which cannot change their handle later: TLS, with it https, and http2. While their
 * connection may yet move, they have our handle from the start, with TCP below it (promoted-handle.ts).
 *
 * Over TCP this handle costs more than Node's own. So it is for connections within this host, and not for servers
 * whose clients turn out to be strangers.
 */
import type { Server } from 'node:net'
import { makeHidden } from '../../nic/index.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { type ConnectedTcp, endsOfTcp, isOfHttp2 } from '../handle/tcp-below.ts'
import { type HandleExchange, isUnconnectedTls } from '../handle/tls-sockets.ts'
import { isReachable, withoutMapping } from '../host/addresses.ts'
import { type NodeInternals, nodeInternals, type TcpHandle } from '../host/node-internals.ts'
import { tls } from '../host/node-tls.ts'
import { PromotedHandle, type Starter } from './promoted-handle.ts'

/** After so many connections in a row without a relinked client, servers accept with Node's own handle. */
const STRANGERS_MAX = 4
let strangers = 0

/** A relinked client has asked this thread for something. */
export function noteRelinkedClient(): void {
  strangers = 0
}

/** Whether native code is going to read this socket, which is about to connect. */
export function isForNativeCode(socket: FastSocket): boolean {
  return isUnconnectedTls(socket) || isOfHttp2(socket)
}

/** Gives a connecting socket our handle, over a new TCP handle. */
export function startOverTcp(socket: FastSocket, exchange: HandleExchange, starter: Starter): void {
  const tcp = makeHidden(() => (nodeInternals() as NodeInternals).createTcp()) as ConnectedTcp
  const own = new PromotedHandle(tcp, exchange, undefined, starter)
  own.socket = socket
  exchange(socket, own.handle)
  // A session of http2 has looked at the handle before this one.
  own.noteNative()
}

/** Gives the connections that a server of TLS or http2 accepts over TCP our handle. Call it when the server listens. */
export function acceptOverTcp(server: Server, exchange: HandleExchange): void {
  const { _handle: shadow } = server as Server & { _handle: TcpHandle | null }
  const accept = shadow?.onconnection
  if (shadow === null || typeof accept !== 'function' || !isNativeServer(server)) return
  shadow.onconnection = function (this: unknown, status: number, client: object): void {
    const mayMove = status === 0 && strangers < STRANGERS_MAX && isFromThisHost(client)
    accept.call(shadow, status, mayMove ? placedOver(client as ConnectedTcp, exchange) : client)
  }
}

function placedOver(tcp: ConnectedTcp, exchange: HandleExchange): object {
  strangers++
  // Hooks know the connection by its TCP handle.
  return makeHidden(() => new PromotedHandle(tcp, exchange, undefined)).handle
}

function isFromThisHost(client: object): boolean {
  const address = withoutMapping(endsOfTcp(client, true)?.client.address ?? '')
  return isReachable(address, address.includes(':') ? 6 : 4)
}

function isNativeServer(server: Server): boolean {
  if (server instanceof tls.Server) return true
  // The class is not exported.
  for (let at = Object.getPrototypeOf(server); at !== null; at = Object.getPrototypeOf(at))
    if (at.constructor?.name === 'Http2Server') return true
  return false
}
