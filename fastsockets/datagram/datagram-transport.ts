import type { Socket } from 'node:dgram'
import { isDisabled } from '../host/environment.ts'
import { allowsDatagrams } from '../policy/own-policy.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import { handleOf } from './udp-handles.ts'
import { type DatagramPair, udpNotesOf } from './udp-notes.ts'
import { seenSockets } from './watching.ts'

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
  const notes = handle && udpNotesOf(handle)
  const pairs = notes?.carrier?.pairs() ?? []
  const reason = notes === undefined ? reasonWithoutNotes(socket) : notes.reason
  const code = isDisabled() ? 'DISABLED' : allowsDatagrams() ? reason : 'POLICY'
  const isFast = pairs.some(({ sends, receives }) => sends === 'shm' || receives === 'shm')
  return { transport: isFast ? 'shm' : 'udp', ...(code && { reason: fallbackReason(code) }), pairs }
}

/** A cluster worker's socket gets its handle from the primary. */
function reasonWithoutNotes(socket: Socket): FallbackCode {
  if (handleOf(socket) === undefined) return 'NOT_CONNECTED'
  if (seenSockets.has(socket)) return 'OWN_HANDLE'
  return 'NOT_INSTALLED'
}
