import type { Server, Socket } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import { openLog } from '../../nic/index.ts'
import type { SocketInternals } from '../host/node-internals.ts'
import { forgetFailure } from '../policy/required-error.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { knownNotesOf, notesOf, type PlainWire } from '../status/socket-notes.ts'
import type { Place } from '../status/status-page.ts'
import type { StreamCounters } from '../status/stream-counts.ts'
import { hideTcp, showTcpClient } from '../status/tcp-rows.ts'
import { fastOf } from './fast-handle.ts'

/**
 * Logs the outcome of a connect. Undefined unless DEBUG is set when the program starts: a look at `process.env` costs as
 * much as a tenth of a connection.
 */
export const logConnect = process.env.DEBUG ? openLog('fastsockets:connect') : undefined

export interface Wire {
  /** The wire: a driver's name (`shm`, `loopback`), `tcp`, `pipe`; `connecting` while it is not decided; `none` if it never was. */
  readonly transport: string
  /** Why it is not a fast one; always there when it is not. */
  readonly reason?: FallbackReason
}

export interface Transport extends Wire {
  readonly bytesIn: number
  readonly bytesOut: number
  /** How the bytes of an open fast socket went. */
  readonly counts?: StreamCounters
}

/** Which wire a socket uses, since when it is known until the socket is collected. Works for TLS sockets, too. */
export function transportOf(socket: Socket): Transport {
  const { bytesRead: bytesIn, bytesWritten: bytesOut } = socket
  const wire = wireOf(socket)
  const counts = countsOf(socket as WiredSocket)
  return { ...wire, bytesIn: bytesIn ?? 0, bytesOut: bytesOut ?? 0, ...(counts && { counts }) }
}

/** Sockets as Node makes them; the members are not public. */
type WiredSocket = Partial<SocketInternals> & {
  _parent?: Socket | null
  _server?: Server | null
  connecting?: boolean
  destroyed?: boolean
}

/** Also of a socket that has been sent away meanwhile, or that other processes have, too. */
export function isFast(socket: object): boolean {
  return (
    fastOf((socket as WiredSocket)._handle) !== undefined || typeof knownNotesOf(socket)?.record === 'string'
  )
}

function countsOf(socket: WiredSocket): StreamCounters | undefined {
  const fast = fastOf(socket._handle)
  if (fast !== undefined) return fast.stream?.counts.snapshot()
  return socket._parent ? countsOf(socket._parent as WiredSocket) : undefined
}

/** The same without what has to be counted, for who asks it of each socket. */
export function wireOf(of: Socket): Wire {
  const socket = of as WiredSocket
  const notes = knownNotesOf(socket)
  const record = notes?.record
  if (typeof record === 'string') return { transport: record }
  if (record !== undefined) return record
  const fast = fastOf(socket._handle)
  if (fast !== undefined) return { transport: fast.stream?.channel.transport ?? 'connecting' }
  if (socket._parent) return wireOf(socket._parent)
  if (socket._server) return { transport: 'tcp', reason: fallbackReason('ACCEPTED') }
  // One without a handle that we have not met may also be an old connection that is closed.
  const isIdle = !socket._handle && !socket.connecting && !socket.destroyed
  if (isIdle || notes?.isCandidate === true)
    return { transport: 'none', reason: fallbackReason('NOT_CONNECTED') }
  return { transport: 'tcp', reason: fallbackReason('NOT_INSTALLED', threadDetail()) }
}

/** Node runs no `--import` in a worker thread that is made with `eval: true`. */
function threadDetail(): string | undefined {
  return isMainThread
    ? undefined
    : 'in a worker thread made with `eval: true` Node runs --require, not --import'
}

/** The socket begins to connect and may become fast; what was on record of an earlier connection is over. */
export function recordCandidate(socket: object): void {
  const notes = notesOf(socket)
  notes.isCandidate = true
  notes.record = undefined
}

/** Whether a connect of this socket under way may go on fast with a further address. */
export function isCandidate(socket: object): boolean {
  return knownNotesOf(socket)?.isCandidate === true
}

/** The socket is fast, over this driver. */
export function recordFast(socket: object, transport: string): void {
  const notes = notesOf(socket)
  if (typeof notes.record === 'object') {
    forgetFailure(socket as Socket)
    hideTcp(socket)
  }
  notes.record = transport
}

/** The connections of a server that is known not to be relinked share what is on record of them. */
let lastFallback: PlainWire | undefined

/**
 * The socket is on TCP, or a unix path served by the kernel, and why; `remote` is what the program asked for.
 */
export function recordFallback(
  socket: object,
  reason: FallbackReason,
  remote?: Place,
  transport: 'tcp' | 'pipe' = 'tcp',
): void {
  if (lastFallback?.reason !== reason || lastFallback.transport !== transport)
    lastFallback = { transport, reason }
  logConnect?.('%s port %d: %s, %s: %s', remote?.address, remote?.port, transport, reason.code, reason.text)
  showTcpClient(socket as Socket, lastFallback, remote)
}
