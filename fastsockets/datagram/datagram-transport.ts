import type { Socket } from 'node:dgram'
import { allowsDatagrams } from '../policy/own-policy.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import { type DatagramPair, handleOf, type UdpHandle, udpNotesOf, watching } from './udp-handles.ts'

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
  const pairs = (handle && udpNotesOf(handle)?.carrier?.pairs()) ?? []
  const reason = handle && reasonAgainst(handle)
  const isFast = pairs.some(({ sends, receives }) => sends === 'shm' || receives === 'shm')
  return { transport: isFast ? 'shm' : 'udp', ...(reason && { reason: fallbackReason(reason) }), pairs }
}

function reasonAgainst(handle: UdpHandle): FallbackCode | undefined {
  if (!allowsDatagrams()) return 'POLICY'
  const notes = udpNotesOf(handle)
  if (notes !== undefined) return notes.reason
  return watching.isOn ? 'OWN_HANDLE' : 'NOT_INSTALLED'
}
