/** Sockets of relinked programs that are on TCP, as far as we meet them, on the status page with their reason. */
import diagnostics from 'node:diagnostics_channel'
import type { Server, Socket } from 'node:net'
import { isOwn } from '../../nic/index.ts'
import { setTimeout } from '../../nic/real-time.ts'
import { EVENTS, tell } from '../events.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { type Place, type RowText, StatusRow, statusPage } from './status-page.ts'

/** A property of the socket, because a WeakMap costs every TCP connection more than all the rest. */
const ROW = Symbol('fastsockets.row')
/** What the row will say, until it is opened. */
type Shown = { [ROW]?: StatusRow | RowText | undefined }

/** A row is opened so much later: a connection that cannot be fast should cost as little more as can be. */
const OPEN_AFTER_MS = 10
const waiting: Shown[] = []

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
  hideTcp(socket)
  page.countOpened()
  shown[ROW] = { kind: 'tcp', transport, role: 'client', reason: code, remote }
  if (waiting.push(shown) === 1) setTimeout(openRows, OPEN_AFTER_MS).unref()
}

function openRows(): void {
  for (const shown of waiting.splice(0)) {
    const text = shown[ROW]
    if (text !== undefined && !(text instanceof StatusRow)) shown[ROW] = statusPage().open(text, true)
  }
}

/** The socket is destroyed, or fast after all. */
export function hideTcp(socket: object): void {
  const shown = socket as Shown
  const row = shown[ROW]
  if (row === undefined) return
  if (row instanceof StatusRow) row.close()
  shown[ROW] = undefined
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
