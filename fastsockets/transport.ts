import type { Server, Socket } from 'node:net'
import { isFastHandle } from './fast-handle.ts'
import type { SocketInternals } from './node-internals.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from './reasons.ts'

export interface Transport {
  /** The wire: a driver's name (`shm`, `loopback`), `tcp`, `pipe`; `connecting` while it is not decided. */
  readonly transport: string
  /** Why it is not a fast one; always there when it is not. */
  readonly reason?: FallbackReason
  readonly bytesIn: number
  readonly bytesOut: number
}

interface Wire {
  readonly transport: string
  readonly reason?: FallbackReason
}

const wires = new WeakMap<object, Wire>()
const counts = new Map<FallbackCode, number>()

/** Which wire a socket uses, since when it is known until the socket is collected. Works for TLS sockets, too. */
export function transportOf(socket: Socket): Transport {
  const { bytesRead: bytesIn, bytesWritten: bytesOut } = socket
  const wire = wireOf(socket as WiredSocket)
  return { ...wire, bytesIn: bytesIn ?? 0, bytesOut: bytesOut ?? 0 }
}

/** Sockets as Node makes them; the members are not public. */
type WiredSocket = Partial<SocketInternals> & { _parent?: Socket | null; _server?: Server | null }

function wireOf(socket: WiredSocket): Wire {
  const known = wires.get(socket)
  if (known !== undefined) return known
  if (isFastHandle(socket._handle)) {
    const channel = socket._handle.stream?.channel
    return { transport: channel?.transport ?? 'connecting' }
  }
  if (socket._parent) return wireOf(socket._parent as WiredSocket)
  if (socket._server) return { transport: 'tcp', reason: fallbackReason('ACCEPTED') }
  return { transport: 'tcp', reason: fallbackReason('NOT_INSTALLED') }
}

/** The socket is fast, over this driver. */
export function recordFast(socket: object, transport: string): void {
  wires.set(socket, { transport })
}

/** The socket is on TCP (or a pipe), and why. Counted. */
export function recordFallback(socket: object, reason: FallbackReason): void {
  wires.set(socket, { transport: reason.code === 'PIPE' ? 'pipe' : 'tcp', reason })
  counts.set(reason.code, (counts.get(reason.code) ?? 0) + 1)
}

/** How many connections of this thread fell back, by reason. */
export function fallbackCounts(): ReadonlyMap<FallbackCode, number> {
  return counts
}
