/** What of the rendezvous folder the first phase (light-phase.ts) needs: which sockets cannot wait for the rest. */
import { isIP } from 'node:net'
import { performance } from '../../nic/performance.ts'
import { hasName } from '../../nic/rendezvous/folder.ts'
import { listenerName } from '../../nic/rendezvous/names-layout.ts'
import { isLoopback, reachableOwnAddress } from '../host/addresses.ts'
import { startPhase } from '../host/start-phase.ts'
import type { ConnectTarget } from './connect-target.ts'

/** Who connects to one address again and again does not pay for a look at the folder each time. */
const MISS_TTL_MS = 10
let missed: ConnectTarget | undefined
let missedAtMs = 0

/** Whether it may lead to a listener of the folder, from its first byte on. */
export function mayBeFast(target: ConnectTarget): boolean {
  const { address, port, isPath } = target
  if (isPath) return true
  if (address === 'localhost') return false
  // A host name may be any container's.
  if (isIP(address) === 0) return true
  const nowMs = performance.now()
  if (port === missed?.port && address === missed.address && nowMs - missedAtMs < MISS_TTL_MS) return false
  if (reachableOwnAddress(address) === undefined && isPublished(address, port)) return true
  missed = target
  missedAtMs = nowMs
  return false
}

/** Whether a listener at an address of another host, or of a container, has a name in the folder. */
export function isPublished(address: string, port: number): boolean {
  return !address.includes('%') && hasName(listenerName(address, port), startPhase.folder)
}

/** Whether other containers may call a listener; the first argument of `_listen2` is a host's address, a path, or null for all addresses. */
export function isForFolder([address]: readonly unknown[]): boolean {
  return typeof address !== 'string' || !isLoopback(address)
}
