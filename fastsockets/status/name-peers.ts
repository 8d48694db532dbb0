/**
 * Joins the two ends of each connection of this host: each row then names the process at its other end, and has the
 * count of bytes that this process has taken. (A peer reports consumed bytes once half a window is unreported, or with its
 * own data: on an idle connection that may be late. A reader of both pages need not wait for it.)
 */
import type { ProcessStatus, SocketStatus } from './decode-status.ts'
import { kernelPeers, withoutMapping } from './kernel-peers.ts'

interface End {
  readonly socket: SocketStatus
  readonly process: ProcessStatus
}

/** The transports whose two ends are on one host. */
const HERE: ReadonlySet<string> = new Set(['shm', 'loopback', 'tcp'])

/** The same threads. A peer that is not among them is sought in the kernel's table of TCP connections. */
export function withPeers(threads: readonly ProcessStatus[]): ProcessStatus[] {
  const byEnds = new Map<string, End | undefined>()
  for (const process of threads) {
    for (const socket of process.sockets) {
      if (!isHere(socket)) continue
      const key = keyOf(socket.transport, socket.local, socket.remote)
      // Equal addresses occur in two network namespaces; the peer is then ambiguous.
      byEnds.set(key, byEnds.has(key) ? undefined : { socket, process })
    }
  }
  const peerOf = (socket: SocketStatus): End | undefined =>
    isHere(socket) ? byEnds.get(keyOf(socket.transport, socket.remote, socket.local)) : undefined
  const strangers = threads
    .flatMap(({ sockets }) => sockets)
    .filter(socket => socket.transport === 'tcp' && isHere(socket) && peerOf(socket) === undefined)
  const kernels = kernelPeers(strangers)
  return threads.map(thread => ({
    ...thread,
    sockets: thread.sockets.map(socket => {
      const end = peerOf(socket)
      if (end !== undefined) return withPeer(socket, end)
      const stranger = kernels.get(socket)
      return stranger === undefined ? socket : { ...socket, peer: stranger }
    }),
  }))
}

/** Sockets on unix paths have no addresses of their own. */
function isHere({ transport, local, remote }: SocketStatus): boolean {
  return HERE.has(transport) && local !== '' && remote !== ''
}

function keyOf(transport: string, from: string, to: string): string {
  return `${transport} ${withoutMapping(from)} ${withoutMapping(to)}`
}

function withPeer(own: SocketStatus, { socket, process }: End): SocketStatus {
  const { pid, thread, program, uid } = process
  const peer = { pid, thread, program, uid }
  if (own.transport === 'tcp') return { ...own, peer }
  const said = own.bytesTakenByPeer ?? 0
  // The two pages were not read at the same moment.
  const taken = Math.min(Math.max(said, socket.bytesTaken ?? 0), own.bytesOut)
  return {
    ...own,
    peer,
    bytesTakenByPeer: taken,
    sendQueue: Math.max(0, (own.sendQueue ?? 0) - (taken - said)),
  }
}
