/** The server's side of promotion: a client names a TCP connection that it has with this thread, and asks for it to move. */
import type { AsyncResource } from 'node:async_hooks'
import type { Server } from 'node:net'
import { makeHidden, peerInode } from '../../nic/index.ts'
import { REFUSAL } from '../bootstrap/bootstrap-layout.ts'
import { mayBeNeighbours } from '../bootstrap/neighbours.ts'
import type { FastHandle } from '../handle/fast-handle-contract.ts'
import { endsOfTcp, movableTcp } from '../handle/tcp-below.ts'
import type { HandleExchange } from '../handle/tls-sockets.ts'
import { withoutMapping } from '../host/addresses.ts'
import { decide, decidePath } from '../policy/own-policy.ts'
import type { FallbackCode } from '../reasons.ts'
import { statusPage } from '../status/status-page.ts'
import type { Accepted, SocketStream } from '../stream/socket-channel.ts'
import { findAccepted } from './accepted-sockets.ts'
import { promotedOf } from './find-promoted.ts'
import { addressesOf } from './four-addresses.ts'
import { take } from './held-connections.ts'
import { HeldHandle } from './held-handle.ts'
import { PromotedHandle } from './promoted-handle.ts'

/** The protocol needs a number other than 0; the client knows its port. */
const NO_PORT = 1

/** What the listeners know of the programs' servers. */
export interface Servers {
  /** The asynchronous context of a server's connections. */
  scopeOf(server: Server): AsyncResource | undefined
  /** Of a server on a unix path. */
  pathOf(server: Server): string | undefined
  /** Other network namespaces find a listener at this place. */
  isPublished(port: number, address: string): boolean
  /** Emits the server's 'connection'. */
  show(server: Server, handle: FastHandle, stream: SocketStream): void
}

/** Only for processes of our own user: the addresses alone do not prove that the connection is the peer's. */
export function acceptPromotion(
  stream: SocketStream,
  port: number,
  text: string,
  promisedPort: number,
  exchange: HandleExchange,
  servers: Servers,
): number | Accepted {
  const { isOfOwnUser, way, portShare } = stream.channel
  if (!isOfOwnUser) return refuse('OTHER_USER', REFUSAL.OTHER_USER)
  if (way !== undefined && !mayBeOfNeighbour(text, port, servers)) return REFUSAL.NOT_LISTENING
  const key = `${text} ${port}`
  const held = take(key)
  const socket = held === undefined ? findAccepted(key) : undefined
  if (socket === 'later') return REFUSAL.LATER
  const placed = promotedOf(socket?._handle)
  if (placed?.mayMove === false) return REFUSAL.NOT_LISTENING
  const tcp = held?.tcp ?? placed?.tcp ?? (socket && movableTcp(socket))
  const ends = tcp && endsOfTcp(tcp, true)
  const server = held?.server ?? (socket as { server?: Server } | undefined)?.server
  const path = server && servers.pathOf(server)
  if (tcp === undefined || (ends === undefined && path === undefined)) {
    held?.tcp.close()
    return REFUSAL.NOT_LISTENING
  }
  const { use } = ends
    ? decide('server', withoutMapping(ends.server.address), port)
    : decidePath('server', path as string)
  if (use === 'tcp') return refuse('POLICY', REFUSAL.NOT_LISTENING)
  portShare.release(promisedPort)
  stream.isPromotion = true
  if (ends === undefined) stream.unixPath = path
  else stream.addresses = addressesOf(ends)
  const scope = server && servers.scopeOf(server)
  const make = (): PromotedHandle => {
    if (placed !== undefined) return placed
    if (held === undefined) return new PromotedHandle(tcp, exchange, socket)
    const handle: HeldHandle = new HeldHandle(tcp, exchange, () => {
      statusPage().countOpened()
      servers.show(held.server, handle, stream)
    })
    return handle
  }
  // Hooks know the connection by its TCP handle.
  const makeBelow = (): PromotedHandle => makeHidden(make)
  const begin = (): void =>
    (scope === undefined ? makeBelow() : scope.runInAsyncScope(makeBelow)).accept(stream)
  return { clientPort: promisedPort || NO_PORT, begin }
}

/** A peer that came through the rendezvous folder has no connection whose other end is in our network namespace. */
function mayBeOfNeighbour(text: string, port: number, servers: Servers): boolean {
  const [client = '', , server] = text.split(' ')
  if (server !== undefined) return mayBeNeighbours(client) && servers.isPublished(port, server)
  // Both ends of a connection over a path are of the client's namespace (unix_stream_connect of Linux).
  return peerInode(Number(client) >>> 0) === undefined
}

function refuse(code: FallbackCode, refusal: number): number {
  statusPage().countRefusal(code)
  return refusal
}
