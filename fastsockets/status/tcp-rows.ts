/**
 * Sockets of relinked programs on TCP, shown on the status page with their reason. The kernel counts their bytes, and
 * Node reads its counters once a second: a message costs nothing more.
 */
import { AsyncResource } from 'node:async_hooks'
import diagnostics from 'node:diagnostics_channel'
import type { Server, Socket } from 'node:net'
import { isOwn } from '../../nic/index.ts'
import { clearInterval, setInterval, setTimeout } from '../../nic/real-time.ts'
import { reasonAgainstPeer } from '../bootstrap/remote-hosts.ts'
import type { SocketName, TcpHandle } from '../host/node-internals.ts'
import { targetPath } from '../host/unix-targets.ts'
import { nameInRules } from '../policy/unix-names.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import { EVENTS, publishEvent } from './events.ts'
import { knownNotesOf, notesOf, type PlainWire, type SocketNotes } from './socket-notes.ts'
import { BYTES_IN, BYTES_OUT } from './status-layout.ts'
import { type Place, type StatusRow, statusPage } from './status-page.ts'

/** A row is opened this much later, so that a connection on TCP costs as little more as possible. */
const OPEN_AFTER_MS = 50
const COUNT_EVERY_MS = 1000
const waiting: SocketNotes[] = []
/** Runs the timer outside any asynchronous context, so that it keeps no AsyncLocalStorage alive. */
const scope = new AsyncResource('FASTSOCKETS')

/** The row of a socket, and what it counts. */
class CountedRow {
  static readonly #all: CountedRow[] = []
  static #timer: NodeJS.Timeout | undefined
  readonly #row: StatusRow
  readonly #socket: Socket
  #at: number

  constructor(row: StatusRow, socket: Socket) {
    this.#row = row
    this.#socket = socket
    this.#at = CountedRow.#all.push(this) - 1
    this.#count()
    if (CountedRow.#timer !== undefined) return
    scope.runInAsyncScope(() => {
      CountedRow.#timer = setInterval(CountedRow.#countAll, COUNT_EVERY_MS).unref()
    })
  }

  close(): void {
    const last = CountedRow.#all.pop() as CountedRow
    if (last !== this) CountedRow.#all[this.#at] = last
    last.#at = this.#at
    this.#row.close()
  }

  static readonly #countAll = (): void => {
    // Without fast connections no hook reports destroyed sockets; a socket sent to another process is never destroyed.
    for (const row of CountedRow.#all.slice()) {
      if (row.#socket.destroyed || !hasHandle(row.#socket)) hideTcp(row.#socket)
      else row.#count()
    }
    if (CountedRow.#all.length > 0) return
    clearInterval(CountedRow.#timer)
    CountedRow.#timer = undefined
  }

  #count(): void {
    const { bytesRead, bytesWritten } = this.#socket
    this.#row.counts[BYTES_IN] = bytesRead
    this.#row.counts[BYTES_OUT] = bytesWritten ?? 0
  }
}

/** A client that falls back to `wire`, with the reason on record; `place` is the target that the program asked for. */
export function showTcpClient(socket: Socket, wire: PlainWire, place: Place | undefined): void {
  const { reason } = wire
  const isPath = wire.transport === 'pipe' && place !== undefined
  const remote = isPath ? { address: nameInRules(place.address), port: 0 } : place
  const page = statusPage()
  const notes = notesOf(socket)
  notes.record = wire
  if (EVENTS.fallback.hasSubscribers) {
    // Made only for subscribers, and without the other members of `place`.
    const peer = remote && { address: remote.address, port: remote.port }
    publishEvent(EVENTS.fallback, { socket, role: 'client', reason, remote: peer })
  }
  page.countFallback(reason.code)
  openLater(socket, notes, false, remote)
}

/** The same for a client that is connected already. */
export function showOlderClient(socket: Socket, wire: PlainWire): void {
  const path = targetPath(socket)
  if (path === undefined) showTcpClient(socket, wire, placeOf(endsOf(socket).remote))
  else showTcpClient(socket, { ...wire, transport: 'pipe' }, { address: path, port: 0 })
}

function openLater(socket: Socket, notes: SocketNotes, isAccepted: boolean, remote?: Place): void {
  hide(notes)
  statusPage().countOpened()
  notes.waiting = socket
  notes.isAccepted = isAccepted
  notes.remote = remote
  if (waiting.push(notes) === 1) scope.runInAsyncScope(openRowsLater)
}

function openRowsLater(): void {
  setTimeout(openRows, OPEN_AFTER_MS).unref()
}

function openRows(): void {
  for (const notes of waiting.splice(0)) {
    const { waiting: socket, record, remote, isAccepted } = notes
    // A socket may be in the list twice.
    waitNoMore(notes)
    // If no connection can be fast, no hook has reported that the socket is destroyed.
    if (socket === undefined || socket.destroyed || !hasHandle(socket)) continue
    if (isAccepted) {
      openRow(socket, 'server', 'ACCEPTED')
      continue
    }
    if (typeof record !== 'object') continue
    const { transport, reason } = record
    const local = transport === 'pipe' ? undefined : placeOf(endsOf(socket).local)
    const { code } = reasonOfStart(socket, record) ?? reason
    const row = statusPage().open(
      { kind: 'tcp', transport, role: 'client', reason: code, local, remote },
      true,
    )
    notes.row = countedRow(row, socket)
  }
}

/** Removes the row of a socket that is destroyed, or that became fast. */
export function hideTcp(socket: object): void {
  const notes = knownNotesOf(socket)
  if (notes !== undefined) hide(notes)
}

/** A socket that closes before it has a row is released at once: V8 would count it as long-lived. */
function hide(notes: SocketNotes): void {
  waitNoMore(notes)
  notes.row?.close()
  notes.row = undefined
}

function waitNoMore(notes: SocketNotes): void {
  notes.waiting = undefined
  notes.remote = undefined
}

/**
 * Shows sockets that a server accepts over TCP: Node's diagnostics channel reports them. `handle` says if a socket is
 * fast.
 */
export function watchAccepted(
  isFast: (socket: Socket) => boolean,
  onTcp: (server: Server, socket: Socket) => void,
): void {
  diagnostics.subscribe('net.server.socket', message => {
    const { socket } = message as { socket: Socket & { server?: Server } }
    const { server } = socket
    if (server === undefined || isOwn(server) || socket.destroyed || isFast(socket)) return
    showAccepted(socket)
    onTcp(server, socket)
  })
}

export function showAccepted(socket: Socket): void {
  statusPage().countFallback('ACCEPTED')
  if (EVENTS.fallback.hasSubscribers) {
    const remote = placeOf(endsOf(socket).remote)
    publishEvent(EVENTS.fallback, { socket, role: 'server', reason: fallbackReason('ACCEPTED'), remote })
  }
  // The program's 'connection' listener may have sent the socket to another process.
  if (hasHandle(socket)) openLater(socket, notesOf(socket), true)
}

/** A connection that has moved is back on TCP. */
export function showTcpAgain(socket: Socket, role: 'client' | 'server', { reason }: PlainWire): void {
  hideTcp(socket)
  if (hasHandle(socket)) openRow(socket, role, reason.code)
}

/** Of a socket that is counted already. */
function openRow(socket: Socket, role: 'client' | 'server', reason: FallbackCode): void {
  const { local, remote } = endsOf(socket)
  const path = role === 'client' ? targetPath(socket) : undefined
  const row = statusPage().open(
    {
      kind: 'tcp',
      transport: local.address === undefined ? 'pipe' : 'tcp',
      role,
      reason,
      local: placeOf(local),
      remote: path === undefined ? placeOf(remote) : { address: nameInRules(path), port: 0 },
    },
    true,
  )
  notesOf(socket).row = countedRow(row, socket)
}

function hasHandle(socket: Socket): boolean {
  return Boolean((socket as { _handle?: object | null })._handle)
}

/** What keeps a client on TCP that has started there, as far as its peer's address tells. */
export function reasonOfStart(socket: Socket, { transport, reason }: PlainWire): FallbackReason | undefined {
  if (transport !== 'tcp' || reason.code !== 'STARTED_ON_TCP') return undefined
  return reasonAgainstPeer(endsOf(socket).remote)
}

/** Read from the handle: the socket's getters would cache the answer for longer than plain Node does. */
function endsOf(socket: Socket): { local: SocketName; remote: SocketName } {
  const { _handle: handle } = socket as { _handle?: Partial<TcpHandle> | null }
  const local: SocketName = {}
  const remote: SocketName = {}
  handle?.getsockname?.(local)
  handle?.getpeername?.(remote)
  return { local, remote }
}

/** Without a row the socket is not read each second; so at most `ROWS_MAX` are. */
function countedRow(row: StatusRow, socket: Socket): CountedRow | undefined {
  return row.isShown ? new CountedRow(row, socket) : undefined
}

function placeOf({ address, port }: SocketName): Place | undefined {
  return address === undefined || port === undefined ? undefined : { address, port }
}
