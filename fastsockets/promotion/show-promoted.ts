/** Shows that a connection has moved from TCP. */
import { dateNow } from '../../nic/real-time.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { recordPromoted } from '../handle/transport.ts'
import { EVENTS, publishEvent } from '../status/events.ts'
import { statusPage } from '../status/status-page.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import { endsOf } from '../stream/stream-addresses.ts'

/** `bytesIn` and `bytesOut`: what TCP has carried. */
export function showPromoted(
  socket: FastSocket,
  stream: SocketStream,
  bytesIn: number,
  bytesOut: number,
): void {
  const { transport } = stream.channel
  statusPage().countPromoted()
  recordPromoted(socket, transport, { atMs: dateNow(), bytesIn, bytesOut })
  if (!EVENTS.promoted.hasSubscribers) return
  const { role } = stream
  publishEvent(EVENTS.promoted, { socket, transport, role, ...endsOf(stream), bytesIn, bytesOut })
}
