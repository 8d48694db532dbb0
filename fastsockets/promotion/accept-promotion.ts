/** The server's side of promotion: a client names a TCP connection that it has with this thread, and asks for it to move. */
import type { AsyncResource } from 'node:async_hooks'
import type { Server } from 'node:net'
import { isOwnUser } from '../../nic/index.ts'
import { REFUSAL } from '../bootstrap/bootstrap-layout.ts'
import { endsOfTcp, movableTcp } from '../handle/tcp-below.ts'
import type { HandleExchange } from '../handle/tls-sockets.ts'
import { decide } from '../policy/own-policy.ts'
import type { Accepted, SocketStream } from '../stream/socket-channel.ts'
import { findAccepted } from './accepted-sockets.ts'
import { addressesOf } from './four-addresses.ts'
import { PromotedHandle } from './promoted-handle.ts'

/** The protocol needs a number other than 0; the client knows its port. */
const NO_PORT = 1

/**
 * Only for processes of our own user: the addresses alone do not prove that the connection is the peer's. `scopeOf`: the
 * asynchronous context of a server's connections.
 */
export function acceptPromotion(
  stream: SocketStream,
  port: number,
  text: string,
  promisedPort: number,
  exchange: HandleExchange,
  scopeOf: (server: Server) => AsyncResource | undefined,
): number | Accepted {
  const { isLoopback, peerUid, portShare } = stream.channel
  if (!isLoopback && (peerUid === undefined || !isOwnUser(peerUid))) return REFUSAL.OTHER_USER
  const socket = findAccepted(port, text)
  const tcp = socket && movableTcp(socket)
  const ends = tcp && endsOfTcp(tcp, true)
  if (socket === undefined || tcp === undefined || ends === undefined) return REFUSAL.NOT_LISTENING
  if (decide('server', ends.server.address, port).use === 'tcp') return REFUSAL.NOT_LISTENING
  portShare.release(promisedPort)
  stream.isPromotion = true
  stream.addresses = addressesOf(ends)
  const { server } = socket as { server?: Server }
  const scope = server && scopeOf(server)
  const make = (): PromotedHandle => new PromotedHandle(socket, tcp, exchange)
  const begin = (): void => (scope === undefined ? make() : scope.runInAsyncScope(make)).accept(stream)
  return { clientPort: promisedPort || NO_PORT, begin }
}
