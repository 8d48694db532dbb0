import type { Socket } from 'node:net'
import { giveMark } from '../../nic/index.ts'
import type { FallbackReason } from '../reasons.ts'
import type { Place } from './status-page.ts'

/** What carries the bytes of a socket that is not fast, and why. */
export interface PlainWire {
  readonly transport: 'tcp' | 'pipe'
  readonly reason: FallbackReason
}

/**
 * What we note about a socket of the program. It is a member of the socket, because a WeakMap costs a connection that
 * cannot be fast more than everything else that we do to it.
 */
export class SocketNotes {
  /** A driver's name, or the wire that it has instead. */
  record: string | PlainWire | undefined = undefined
  /** It has begun to connect, and may have become fast. */
  isCandidate = false
  /** Where it is on the status page, if it is on TCP. */
  row: { close(): void } | undefined = undefined
  /** While it waits for its row: the socket, and what the program asked for. */
  waiting: Socket | undefined = undefined
  remote: Place | undefined = undefined
}

const NOTES = Symbol('fastsockets.notes')
type Noted = { [NOTES]?: SocketNotes }

/**
 * All that a socket may have of ours, in one order, whatever becomes of it: what V8 compiles of Node is for the shapes of
 * sockets that it has met, and all of it is thrown away when it meets another.
 */
export function notesOf(socket: object): SocketNotes {
  const noted = socket as Noted
  const known = noted[NOTES]
  if (known !== undefined) return known
  giveMark(socket)
  const notes = new SocketNotes()
  noted[NOTES] = notes
  return notes
}

export function knownNotesOf(socket: object): SocketNotes | undefined {
  return (socket as Noted)[NOTES]
}
