/** Whether peers of the first phase (light-phase.ts) may be relinked. Loaded once TCP has cost as much as to load the rest. */
import { isIP } from 'node:net'
import { hashedPorts } from '../bootstrap/hashed-port.ts'
import { reachableOwnAddress, withoutMapping } from '../host/addresses.ts'
import { isListened } from '../host/kernel-sockets.ts'
import type { ConnectTarget } from './connect-target.ts'
import { isPublished } from './light-folder.ts'

/**
 * True if somebody of this host listens at the hashed port of a destination, as servers in their first phase do, too
 * (bootstrap/early-ports.ts); if the rendezvous folder has a name for one by now; for any unix path; and if the kernel does not list listeners.
 */
export function mayBeRelinked(destinations: Iterable<ConnectTarget>): boolean {
  const ports: number[] = []
  for (const { address, port, isPath } of destinations) {
    if (isPath) return true
    // A host name may be this host's.
    if (isIP(address) === 0 || reachableOwnAddress(withoutMapping(address)) !== undefined)
      ports.push(...hashedPorts(port))
    else if (isPublished(address, port)) return true
  }
  return isListened(ports) !== false
}
