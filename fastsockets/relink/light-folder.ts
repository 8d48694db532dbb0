/** What of the rendezvous folder the first phase (light-phase.ts) needs: which sockets cannot wait for the rest. */
import { isIP } from 'node:net'
import { hasName } from '../../nic/rendezvous/folder.ts'
import { listenerName } from '../../nic/rendezvous/names-layout.ts'
import { isLoopback, reachableOwnAddress } from '../host/addresses.ts'
import { startPhase } from '../host/start-phase.ts'
import type { ConnectTarget } from './connect-target.ts'

/** Whether it may lead to a listener of the folder, from its first byte on. */
export function mayBeFast({ address, port, isPath }: ConnectTarget): boolean {
  if (isPath) return true
  if (address === 'localhost') return false
  // A host name may be any container's.
  if (isIP(address) === 0) return true
  return reachableOwnAddress(address) === undefined && isPublished(address, port)
}

/** Whether a listener at an address of another host, or of a container, has a name in the folder. */
export function isPublished(address: string, port: number): boolean {
  return !address.includes('%') && hasName(listenerName(address, port), startPhase.folder)
}

/** Whether other containers may call a listener; the first argument of `_listen2` is a host's address, a path, or null for all addresses. */
export function isForFolder([address]: readonly unknown[]): boolean {
  return typeof address !== 'string' || !isLoopback(address)
}
