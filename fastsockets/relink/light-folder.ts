/** What of the rendezvous folder the first phase (light-phase.ts) needs: which sockets cannot wait for the rest. */
import { isIP } from 'node:net'
import { hasName } from '../../nic/rendezvous/folder.ts'
import { listenerName } from '../../nic/rendezvous/names-layout.ts'
import { isLoopback, reachableOwnAddress } from '../host/addresses.ts'
import type { ConnectTarget } from './connect-target.ts'

/** `fast`: it may lead to a listener of the folder, from its first byte on; `tcp`: it leads elsewhere, and the folder has no name for it. */
export function wayTo({ address, port, isPath }: ConnectTarget): 'fast' | 'here' | 'tcp' {
  if (isPath) return 'fast'
  if (address === 'localhost') return 'here'
  // A host name may be any container's.
  if (isIP(address) === 0) return 'fast'
  if (reachableOwnAddress(address) !== undefined) return 'here'
  return !address.includes('%') && hasName(listenerName(address, port)) ? 'fast' : 'tcp'
}

/** Whether other containers may call a listener; the first argument of `_listen2` is a host's address, a path, or null for all addresses. */
export function isForFolder([address]: readonly unknown[]): boolean {
  return typeof address !== 'string' || !isLoopback(address)
}
