/**
 * What a peer has taken it says when half a window is owed, or with what it sends itself: on a connection that is idle that
 * may be long after. Whoever sees the pages of both need not wait for it.
 */
import type { SocketStatus, ThreadStatus } from './decode-status.ts'

/** Only these have both ends on one host. */
const HERE: ReadonlySet<string> = new Set(['shm', 'loopback'])
/** A dual-stack server sees IPv4 addresses so. */
const MAPPED = /^\[::ffff:([\d.]+)\]/

/** The same, with what each socket's peer has taken, where that is among them. */
export function withPeersCounts<T extends ThreadStatus>(threads: readonly T[]): T[] {
  const byEnds = new Map<string, SocketStatus | undefined>()
  for (const { sockets } of threads) {
    for (const socket of sockets) {
      if (!isHere(socket)) continue
      const key = keyOf(socket.transport, socket.local, socket.remote)
      // Two with the same addresses: in two networks. Then nobody knows whose peer is whose.
      byEnds.set(key, byEnds.has(key) ? undefined : socket)
    }
  }
  return threads.map(thread => ({
    ...thread,
    sockets: thread.sockets.map(socket => {
      const peer = isHere(socket)
        ? byEnds.get(keyOf(socket.transport, socket.remote, socket.local))
        : undefined
      return peer === undefined ? socket : withPeer(socket, peer)
    }),
  }))
}

/** Sockets on unix paths have no addresses of their own. */
function isHere({ transport, local, remote }: SocketStatus): boolean {
  return HERE.has(transport) && local !== '' && remote !== ''
}

function keyOf(transport: string, from: string, to: string): string {
  return `${transport} ${from.replace(MAPPED, '$1')} ${to.replace(MAPPED, '$1')}`
}

function withPeer(socket: SocketStatus, peer: SocketStatus): SocketStatus {
  const said = socket.bytesTakenByPeer ?? 0
  // The two pages were not read at the same moment.
  const taken = Math.min(Math.max(said, peer.bytesTaken ?? 0), socket.bytesOut)
  return {
    ...socket,
    bytesTakenByPeer: taken,
    sendQueue: Math.max(0, (socket.sendQueue ?? 0) - (taken - said)),
  }
}
