import net from 'node:net'

/**
 * Sockets and servers that we make for ourselves, and that whoever hooks `node:net` must leave alone. The mark is a
 * property under a shared symbol, so that another copy of this package in the same thread knows them, too.
 */
const OWN = Symbol.for('fastsockets.own')

type Markable = { [OWN]?: true }

export function markOwn(socket: object): void {
  const markable = socket as Markable
  markable[OWN] = true
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
