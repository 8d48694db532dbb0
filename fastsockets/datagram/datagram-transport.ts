import type { Socket } from 'node:dgram'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { type DatagramPair, handleOf, udpNotesOf } from './udp-handles.ts'

export interface DatagramTransport {
  /** `shm` if any pair has moved there; other datagrams are the kernel's. */
  readonly transport: 'udp' | 'shm'
  /** Why only the kernel may carry its datagrams. */
  readonly reason?: FallbackReason
  readonly pairs: readonly DatagramPair[]
}

/** The transport of a socket of `node:dgram` that is open. */
export function datagramTransportOf(socket: Socket): DatagramTransport {
  const handle = handleOf(socket)
  const { carrier, reason } = (handle && udpNotesOf(handle)) ?? {}
  const pairs = carrier?.pairs() ?? []
  const isFast = pairs.some(({ sends, receives }) => sends === 'shm' || receives === 'shm')
  return { transport: isFast ? 'shm' : 'udp', ...(reason && { reason: fallbackReason(reason) }), pairs }
}
