/**
 * Sockets that native code is going to read, which cannot change their handle later: TLS, with it https, and http2. While their
 * connection may yet move, they have our handle from the start, with TCP below it (promoted-handle.ts).
 *
 * Over TCP this handle costs more than Node's own. So it is for connections within this host, and not for servers
 * whose clients turn out to be strangers.
 */
import { isOwn, makeHidden } from '../../nic/index.ts'
import { earlySides } from '../handle/early-side.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { type ConnectedTcp, endsOfTcp, isOfHttp2, isOverPath, movableTcp } from '../handle/tcp-below.ts'
import { type HandleExchange, isUnconnectedTls } from '../handle/tls-sockets.ts'
import { isReachable, withoutMapping } from '../host/addresses.ts'
import { type NodeInternals, nodeInternals } from '../host/node-internals.ts'
import { STRANGERS_MAX } from './native-signs.ts'
import { PromotedHandle, type Starter } from './promoted-handle.ts'

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
  const isReferenced = (socket._handle as { hasRef?(): boolean } | null)?.hasRef?.() !== false
  exchange(socket, own.handle)
  if (!isReferenced) own.unref()
  // A session of http2 has looked at the handle before this one.
  own.noteNative()
}

/** The client's side: whether a connection is worth our handle. */
export interface NativeStarter extends Starter {
  mayMoveLater(socket: FastSocket): boolean
}

/**
 * Native code is about to read a connected socket: gives it our handle if the connection may move later. To be called before that code takes
 * the handle of the socket.
 */
export function placeForNative(socket: FastSocket, exchange: HandleExchange, starter: NativeStarter): void {
  const tcp = isOwn(socket) ? undefined : movableTcp(socket, undefined, true)
  if (tcp === undefined || tcp._consumed === true) return
  const isAccepted = Boolean((socket as { server?: unknown }).server)
  if (isAccepted ? !mayBeRelinked(tcp) : !starter.mayMoveLater(socket)) return
  if (isAccepted) strangers++
  // Hooks know the connection by its TCP handle.
  makeHidden(() =>
    new PromotedHandle(tcp, exchange, socket, isAccepted ? undefined : starter).placeForNative(),
  )
}

/** Whether the client of an accepted connection may be. */
function mayBeRelinked(tcp: ConnectedTcp): boolean {
  if (strangers >= STRANGERS_MAX) return false
  const address = withoutMapping(endsOfTcp(tcp, true)?.client.address ?? '')
  return isOverPath(tcp) || isReachable(address, address.includes(':') ? 6 : 4)
}

/** The rest is loaded: connections that native code has begun to read may move. */
export function replaceEarly(exchange: HandleExchange, starter: NativeStarter | undefined): void {
  for (const early of earlySides) {
    const { tcp, socket } = early
    early.flush()
    const client = (socket as { server?: unknown }).server ? undefined : starter
    makeHidden(() => new PromotedHandle(tcp, exchange, socket, client, undefined, early))
  }
  earlySides.clear()
}
