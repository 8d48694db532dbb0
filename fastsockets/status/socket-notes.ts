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
  /** Where it is on the status page, if it is on TCP. */
  row: { close(): void } | undefined = undefined
  /** While it waits for its row: the socket, and what the program asked for. */
  waiting: Socket | undefined = undefined
  remote: Place | undefined = undefined
}

/** Makes the object that it is given the one that `new` initialises: a class that extends it adds its private fields to that. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: that is what it is for.
    return object
  }
}

/**
 * The notes are a private field of the socket: no code but this sees it, and whatever prints, copies or compares sockets
 * passes it by. A WeakMap would cost a connection that cannot be fast more than everything else that we do to it.
 */
class Noted extends Given {
  readonly #notes = new SocketNotes()

  static of(socket: object): SocketNotes | undefined {
    return #notes in socket ? (socket as Noted).#notes : undefined
  }
}

/**
 * A socket gets its notes before Node connects it, whatever becomes of it: what V8 compiles of Node is for the shapes of
 * sockets that it has met, and all of it is thrown away when it meets another.
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
