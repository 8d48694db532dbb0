import type { Socket } from 'node:net'
import type { FallbackReason } from '../reasons.ts'
import type { Place } from './status-page.ts'

/** What carries the bytes of a socket that is not fast, and why. */
export interface PlainWire {
  readonly transport: 'tcp' | 'pipe'
  readonly reason: FallbackReason
}

/** What we note about a socket of the program. */
export class SocketNotes {
  /** A driver's name, or the wire that it has instead. */
  record: string | PlainWire | undefined = undefined
  /** It has begun to connect, and may have become fast. */
  isCandidate = false
  /** Its row on the status page, if it is on TCP. */
  row: { close(): void } | undefined = undefined
  /** While it waits for its row: the socket, and the target that the program asked for. */
  waiting: Socket | undefined = undefined
  remote: Place | undefined = undefined
}

/** Returns the given object from its constructor, so that a subclass adds its private fields to that object. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the purpose of this class.
    return object
  }
}

/**
 * The notes are a private field of the socket: invisible to code that prints, copies or compares sockets. A WeakMap would cost a
 * connection on TCP more than everything else that we do for it.
 */
class Noted extends Given {
  readonly #notes = new SocketNotes()

  static of(socket: object): SocketNotes | undefined {
    return #notes in socket ? (socket as Noted).#notes : undefined
  }
}

/**
 * A socket gets its notes before Node connects it, whatever becomes of it: V8 compiles Node's code for the hidden classes of
 * sockets that it has met, and discards the compiled code when it meets another.
 */
export function notesOf(socket: object): SocketNotes {
  const known = Noted.of(socket)
  if (known !== undefined) return known
  new Noted(socket)
  return Noted.of(socket) as SocketNotes
}

export function knownNotesOf(socket: object): SocketNotes | undefined {
  return Noted.of(socket)
}
