/**
 * A peer reports consumed bytes once half a window is unreported, or with its own data: on an idle connection that may
 * be late. A reader of both pages need not wait for it.
 */
import type { SocketStatus, ThreadStatus } from './decode-status.ts'

/** The transports whose two ends are on one host. */
const HERE: ReadonlySet<string> = new Set(['shm', 'loopback'])
/** The prefix of IPv4 addresses as a dual-stack server reports them. */
const MAPPED = /^\[::ffff:([\d.]+)\]/

/** The same sockets. If a socket's peer is among them, the peer's own count of bytes taken is filled in. */
export function withPeersCounts<T extends ThreadStatus>(threads: readonly T[]): T[] {
  const byEnds = new Map<string, SocketStatus | undefined>()
  for (const { sockets } of threads) {
    for (const socket of sockets) {
      if (!isHere(socket)) continue
      const key = keyOf(socket.transport, socket.local, socket.remote)
      // Equal addresses occur in two network namespaces; the peer is then ambiguous.
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
