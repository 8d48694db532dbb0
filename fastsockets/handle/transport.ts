import type { Server, Socket } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import { openLog } from '../../nic/index.ts'
import { isDisabled } from '../host/environment.ts'
import type { SocketInternals } from '../host/node-internals.ts'
import { startPhase } from '../host/start-phase.ts'
import { forgetFailure, preciseReason } from '../policy/required-error.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import {
  knownNotesOf,
  notesOf,
  type PlainWire,
  type Promoted,
  type SocketNotes,
} from '../status/socket-notes.ts'
import type { Place } from '../status/status-page.ts'
import type { StreamCounters } from '../status/stream-counts.ts'
import { hideTcp, reasonOfStart, showTcpAgain, showTcpClient } from '../status/tcp-rows.ts'
import { fastOf } from './fast-handle.ts'
import { isOverPath } from './tcp-below.ts'

/**
 * Logs the outcome of a connect. Undefined unless DEBUG is set at the start: reading `process.env` costs a tenth of a
 * connection.
 */
export const logConnect = process.env.DEBUG ? openLog('fastsockets:connect') : undefined

export interface Wire {
  /**
   * A driver's name (`shm`, `loopback`), `tcp`, or `pipe`; `connecting` before the decision; `none` if the socket never
   * connected.
   */
  readonly transport: string
  /** The fallback reason; present unless the transport is fast. */
  readonly reason?: FallbackReason
  /** On TCP, it may still become fast: `pending` while the server is asked. */
  readonly promotion?: 'possible' | 'pending'
}

interface Counted {
  readonly bytesIn: number
  readonly bytesOut: number
  /** The connection has moved from TCP to this wire. */
  readonly promoted?: Promoted
  /** Byte counts of an open fast socket. */
  readonly counts?: StreamCounters
}

/** The wire of a socket that is fast, or is about to have one. */
export interface FastTransport extends Counted {
  readonly transport: 'shm' | 'loopback' | 'verbs' | 'connecting'
  readonly reason?: undefined
  readonly promotion?: undefined
}

/** The wire of a socket that is not fast, and why. */
export interface PlainTransport extends Counted {
  readonly transport: 'tcp' | 'pipe' | 'none'
  readonly reason: FallbackReason
  readonly promotion?: 'possible' | 'pending'
}

/** `transport`, or whether there is a `reason`, tells which. */
export type Transport = FastTransport | PlainTransport

/** The transport of a socket, from the decision until the socket is collected. Works for TLS sockets, too. */
export function transportOf(socket: Socket): Transport {
  const { bytesRead: bytesIn, bytesWritten: bytesOut } = socket
  const wire = wireOf(socket)
  const counts = countsOf(socket as WiredSocket)
  const { promoted } = notesUnder(socket as WiredSocket) ?? {}
  return {
    ...wire,
    bytesIn: bytesIn ?? 0,
    bytesOut: bytesOut ?? 0,
    ...(promoted && { promoted }),
    ...(counts && { counts }),
  } as Transport
}

/** Of the socket, or of the one below its TLS. */
function notesUnder(socket: WiredSocket): SocketNotes | undefined {
  return knownNotesOf(socket) ?? (socket._parent ? notesUnder(socket._parent as WiredSocket) : undefined)
}

/** Members of sockets that are not public. */
type WiredSocket = Partial<SocketInternals> & {
  _parent?: Socket | null
  _server?: Server | null
  connecting?: boolean
  destroyed?: boolean
}

/** True also for a socket that was sent to another process since. */
export function isFast(socket: object): boolean {
  const fast = fastOf((socket as WiredSocket)._handle)
  return fast === undefined ? typeof knownNotesOf(socket)?.record === 'string' : !fast.isOnTcp
}

function countsOf(socket: WiredSocket): StreamCounters | undefined {
  const fast = fastOf(socket._handle)
  if (fast !== undefined) return fast.stream?.counts.snapshot()
  return socket._parent ? countsOf(socket._parent as WiredSocket) : undefined
}

/** As `transportOf`, without the counts: for callers that ask of every socket. */
export function wireOf(of: Socket): Wire {
  const socket = of as WiredSocket
  const notes = knownNotesOf(socket)
  const record = notes?.record
  if (typeof record === 'string') return { transport: record }
  if (record !== undefined) return startOf(of, record)
  const fast = fastOf(socket._handle)
  if (fast?.isOnTcp) return STAYS
  if (fast !== undefined) return { transport: fast.stream?.channel.transport ?? 'connecting' }
  if (socket._parent) return wireOf(socket._parent)
  if (socket._server) return { transport: 'tcp', reason: fallbackReason('ACCEPTED') }
  // A socket without a handle and without a record may also be an old connection that is closed.
  const isIdle = !socket._handle && !socket.connecting && !socket.destroyed
  if (isIdle || notes?.isCandidate === true)
    return { transport: 'none', reason: fallbackReason('NOT_CONNECTED') }
  if (startPhase.wasLight) return startOf(of, POSSIBLE)
  const reason = isDisabled() ? fallbackReason('DISABLED') : fallbackReason('NOT_INSTALLED', threadDetail())
  return { transport: 'tcp', reason }
}

/** A client that has started on TCP, with the reason why it stays there if its peer is elsewhere. */
function startOf(socket: Socket, wire: PlainWire): PlainWire {
  const reason = reasonOfStart(socket, wire)
  return reason === undefined ? wire : { ...wire, reason }
}

/** Node runs no `--import` in a worker thread with `eval: true`. */
function threadDetail(): string | undefined {
  return isMainThread
    ? undefined
    : 'in a worker thread made with `eval: true` Node runs --require, not --import'
}

/** The socket begins to connect and may become fast: drops the record of an earlier connection. */
export function recordCandidate(socket: object): void {
  const notes = notesOf(socket)
  notes.isCandidate = true
  notes.record = undefined
}

/** True if a connect of this socket that is under way may try a further address fast. */
export function isCandidate(socket: object): boolean {
  return knownNotesOf(socket)?.isCandidate === true
}

/** The socket is fast, over this driver. */
export function recordFast(socket: object, transport: string): void {
  const notes = notesOf(socket)
  if (typeof notes.record === 'object') forgetFailure(socket as Socket)
  // Of a client that was on TCP, and of an accepted socket that has moved.
  if (notes.row !== undefined || notes.waiting !== undefined) hideTcp(socket)
  notes.record = transport
  notes.promoted = undefined
}

/** The socket has moved from TCP. */
export function recordPromoted(socket: object, transport: string, promoted: Promoted): void {
  recordFast(socket, transport)
  notesOf(socket).promoted = promoted
}

const STARTED: FallbackReason = fallbackReason('STARTED_ON_TCP')
const POSSIBLE = possibleWire(STARTED)
const PENDING: PlainWire = { transport: 'tcp', reason: STARTED, promotion: 'pending' }
/** Promotion was tried on the server's side, and the client stays on TCP. */
const STAYS: PlainWire = { transport: 'tcp', reason: fallbackReason('ACCEPTED') }

/** On TCP for now; `reason` is why the last search has found no channel. */
export function possibleWire(reason = STARTED): PlainWire {
  return { transport: 'tcp', reason, promotion: 'possible' }
}

/** The socket starts on TCP, to `remote`. */
export function recordStart(socket: object, remote: Place, wire = POSSIBLE): void {
  logConnect?.('%s port %d: tcp at first, %s', remote.address, remote.port, wire.reason.code)
  showTcpClient(socket as Socket, wire, remote)
}

export function recordPending(socket: object): void {
  record(socket, PENDING)
}

export function recordPossible(socket: object, wire = POSSIBLE): void {
  record(socket, wire)
}

export function recordStay(socket: object): void {
  record(socket, STAYS)
}

/** A socket over a unix path starts with the kernel's pipe in place of TCP. */
function record(socket: object, wire: PlainWire): void {
  notesOf(socket).record = isOnPath(socket as WiredSocket) ? { ...wire, transport: 'pipe' } : wire
}

function isOnPath({ _handle: handle }: WiredSocket): boolean {
  return fastOf(handle)?.isOnPath ?? isOverPath(handle)
}

/** The socket is back on TCP. */
export function recordTcpAgain(socket: object, role: 'client' | 'server'): void {
  logConnect?.('the %s is back on tcp', role)
  const wire = role === 'client' ? POSSIBLE : STAYS
  record(socket, wire)
  showTcpAgain(socket as Socket, role, wire)
  notesOf(socket).promoted = undefined
}

/** Connections to a server that is known not to be relinked share one record. */
let lastFallback: PlainWire | undefined

/**
 * Records that the socket is on TCP, or on a unix path served by the kernel, and why. `remote`: the address the program
 * asked for.
 */
export function recordFallback(
  socket: object,
  reason: FallbackReason,
  remote?: Place,
  transport: 'tcp' | 'pipe' = 'tcp',
): void {
  if (lastFallback?.reason !== reason || lastFallback.transport !== transport)
    lastFallback = { transport, reason }
  if (logConnect !== undefined && remote !== undefined) logFallback(reason, remote, transport)
  showTcpClient(socket as Socket, lastFallback, remote)
}

function logFallback(reason: FallbackReason, { address, port }: Place, transport: 'tcp' | 'pipe'): void {
  const { code, text } = transport === 'tcp' ? preciseReason(reason, address, port) : reason
  logConnect?.('%s port %d: %s, %s: %s', address, port, transport, code, text)
}

const UNHEARD: PlainWire = { transport: 'tcp', reason: fallbackReason('NOT_LISTENING') }

/** The kernel has refused the connection: the server is not one that is not relinked, there is none. */
export function recordRefused(socket: object): void {
  notesOf(socket).record = UNHEARD
}
