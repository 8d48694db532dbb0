import net from 'node:net'

/**
 * Sockets and servers that we make for ourselves, and that whoever hooks `node:net` must leave alone. The mark is a
 * property under a shared symbol, so that another copy of this package in the same thread knows them, too.
 */
const OWN = Symbol.for('fastsockets.own')

type Markable = { [OWN]?: boolean }

export function markOwn(socket: object): void {
  const markable = socket as Markable
  markable[OWN] = true
}

/** One of the program's has the property, too, if it is to have the shape of ours. */
export function giveMark(socket: object): void {
  const markable = socket as Markable
  markable[OWN] ??= false
}

/** A socket of ours, not connected yet. */
export function newOwnSocket(): net.Socket {
  const socket = new net.Socket()
  markOwn(socket)
  return socket
}

export function isOwn(socket: object): boolean {
  return (socket as Markable)[OWN] === true
}
