/** Whether peers of the first phase (light-phase.ts) may be relinked. Loaded once TCP has cost as much as to load the rest. */
import { isIP } from 'node:net'
import { reasonAgainstFolder } from '../../nic/rendezvous/folder.ts'
import { hashedPorts } from '../bootstrap/hashed-port.ts'
import { reachableOwnAddress, withoutMapping } from '../host/addresses.ts'
import { isListened } from '../host/kernel-sockets.ts'
import { startPhase } from '../host/start-phase.ts'
import type { ConnectTarget } from './connect-target.ts'
import { isForFolder, isPublished } from './light-folder.ts'

/**
 * True for a unix path; if a process of this host listens at a hashed port of a destination, which a relinked server opens before it
 * loads the rest (bootstrap/early-ports.ts); if the rendezvous folder has a destination's name; and if the kernel's list of listeners cannot be read.
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

/**
 * True if a rendezvous folder was mounted or made after the start, and other containers may call one of the listeners, whose arguments
 * of `_listen2` are given.
 */
export function isForLateFolder(listeners: readonly (readonly unknown[])[]): boolean {
  const { folder } = startPhase
  return (
    folder !== undefined && reasonAgainstFolder(true, folder) === undefined && listeners.some(isForFolder)
  )
}
