import type { Socket } from 'node:net'
import { Given } from '../host/given.ts'
import type { FallbackReason } from '../reasons.ts'
import type { Place } from './status-page.ts'

/** The wire of a socket that is not fast, and the fallback reason. */
export interface PlainWire {
  /** It started on TCP and may become fast: `pending` while the server is asked. */
  readonly promotion?: 'possible' | 'pending'
  readonly transport: 'tcp' | 'pipe'
  readonly reason: FallbackReason
}

/** When a connection moved from TCP, in ms since 1970, and all that TCP had carried until then. */
export interface Promoted {
  readonly atMs: number
  readonly bytesIn: number
  readonly bytesOut: number
}

/** The state that this package keeps for a socket of the program. */
export class SocketNotes {
  /** The driver's name for a fast socket, the wire and reason for any other; undefined before the decision. */
  record: string | PlainWire | undefined = undefined
  promoted: Promoted | undefined = undefined
  /** True from the start of a connect that may become fast. */
  isCandidate = false
  /** The row on the status page; only for a socket on TCP. */
  row: { close(): void } | undefined = undefined
  /** Set until the row is opened: the socket, whether a server has accepted it, and in `remote` the target of the program's connect. */
  waiting: Socket | undefined = undefined
  isAccepted = false
  remote: Place | undefined = undefined
  /** What TCP has cost it; only for a client that started on TCP. */
  started: object | undefined = undefined
  /** A server has accepted it, or it is no TCP connection: not for its side to move. */
  isServers = false
}

/**
 * The notes are a private field of the socket: invisible to code that prints, copies or compares sockets. A WeakMap
 * would cost a connection on TCP more than all other work of this package for the connection.
 */
class Noted extends Given {
  readonly #notes = new SocketNotes()

  static of(socket: object): SocketNotes | undefined {
    return #notes in socket ? (socket as Noted).#notes : undefined
  }
}

/** The notes of `socket`, made on first use. */
export function notesOf(socket: object): SocketNotes {
  const known = Noted.of(socket)
  if (known !== undefined) return known
  new Noted(socket)
  return Noted.of(socket) as SocketNotes
}

export function knownNotesOf(socket: object): SocketNotes | undefined {
  return Noted.of(socket)
}
