import net, { type Socket } from 'node:net'

/**
 * Key of the set of this package's own sockets and servers, which hooks of `node:net` must leave alone. All copies of
 * this package in a thread share one set, a hidden property of `net`. Its value is a function, so that a program that
 * prints or walks `net` does not find the set.
 */
const OWN = Symbol.for('fastsockets.own')

type OwnSockets = (socket: object, isNew: boolean) => boolean

const ownSockets = findOwnSockets()

function findOwnSockets(): OwnSockets {
  const shared = net as unknown as { [OWN]?: OwnSockets }
  if (shared[OWN] === undefined) {
    const known = new WeakSet<object>()
    const value: OwnSockets = (socket, isNew) => {
      if (isNew) known.add(socket)
      return isNew || known.has(socket)
    }
    Object.defineProperty(net, OWN, { value })
  }
  return shared[OWN] as OwnSockets
}

export function markOwn(socket: object): void {
  ownSockets(socket, true)
}

/** A new, unconnected socket marked as this package's own. */
export function newOwnSocket(): Socket {
  const socket = new net.Socket()
  markOwn(socket)
  return socket
}

export function isOwn(socket: object): boolean {
  return ownSockets(socket, false)
}
