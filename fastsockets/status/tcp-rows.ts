/** Sockets of relinked programs that are on TCP, as far as we meet them, on the status page with their reason. */
import diagnostics from 'node:diagnostics_channel'
import type { Server, Socket } from 'node:net'
import { isOwn } from '../../nic/index.ts'
import { EVENTS, tell } from '../events.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { type Place, type StatusRow, statusPage } from './status-page.ts'

/** A property of the socket, because a WeakMap costs every TCP connection more than all the rest. */
const ROW = Symbol('fastsockets.row')
type Shown = { [ROW]?: StatusRow | undefined }

/** A client that falls back; `remote` is what the program asked for. */
export function showTcpClient(
  socket: Socket,
  reason: FallbackReason,
  remote: Place | undefined,
  transport: 'tcp' | 'pipe',
): void {
  const { code } = reason
  const page = statusPage()
  tell(EVENTS.fallback, { socket, role: 'client', reason, remote })
  page.countFallback(code)
  const shown = socket as Shown
  shown[ROW]?.close()
  shown[ROW] = page.open({
    kind: 'tcp',
    transport,
    role: 'client',
    reason: code,
    remote,
  })
}

/** The socket is destroyed, or fast after all. */
export function hideTcp(socket: object): void {
  const shown = socket as Shown
  shown[ROW]?.close()
  if (shown[ROW] !== undefined) shown[ROW] = undefined
}

/** Shows those that a server accepts over TCP: Node tells of them by itself. `handle` says if a socket is fast. */
export function watchAccepted(isFast: (socket: Socket) => boolean, onTcp: (server: Server) => void): void {
  diagnostics.subscribe('net.server.socket', message => {
    const { socket } = message as { socket: Socket & { server?: Server } }
    const { server } = socket
    if (server === undefined || isOwn(server) || socket.destroyed || isFast(socket)) return
    showAccepted(socket)
    onTcp(server)
  })
}

export function showAccepted(socket: Socket): void {
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  const page = statusPage()
  page.countFallback('ACCEPTED')
  const remote = placeOf(remoteAddress, remotePort)
  tell(EVENTS.fallback, { socket, role: 'server', reason: fallbackReason('ACCEPTED'), remote })
  const shown = socket as Shown
  shown[ROW] = page.open({
    kind: 'tcp',
    transport: localAddress === undefined ? 'pipe' : 'tcp',
    role: 'server',
    reason: 'ACCEPTED',
    local: placeOf(localAddress, localPort),
    remote,
  })
}

function placeOf(address: string | undefined, port: number | undefined): Place | undefined {
  return address === undefined || port === undefined ? undefined : { address, port }
}
