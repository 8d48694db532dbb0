/**
 * The rendezvous folder: a folder that containers of one host share. Each name in it is a unix socket.
 *
 *   tcp4-ADDRESS-PORT     a fast listener; its address in dots
 *   tcp6-ADDRESS-PORT     the same; the address as 32 hexadecimal digits
 *   udp4-…, udp6-…        a UDP socket that receives past the kernel, likewise
 *   unix-DEVICE-INODE     a fast listener on a unix path, by the file that it has bound; both in base 36
 *   LISTENER.SLOT         one of the threads that share this listener: one of the names above, and a number below SLOTS
 *   handoff-ID            where a thread passes the memory of its channels
 *   endpoints-ID          where a thread answers for its endpoints of active messages
 *   .new-ID               about to be renamed, or left by a process that was killed meanwhile
 *
 * An ID is 32 hexadecimal digits, random for each thread. A name appears when its socket listens, replaces an older one,
 * and vanishes with its listener; a process that is killed leaves its names, which refuse connections until a later
 * publisher removes them.
 */
import { isIPv4 } from 'node:net'
import { mappedAddress } from '../posix/socket-address.ts'

const ID = '[0-9a-f]{32}'
const LISTENER = `((?:tcp|udp)4-[0-9.]+-\\d+|(?:tcp|udp)6-${ID}-\\d+|unix-[0-9a-z]+-[0-9a-z]+)`
const LAYOUT = new RegExp(`^(${LISTENER}(\\.\\d{1,2})?|(handoff-|endpoints-|\\.new-)${ID})$`)
/** Threads that publish one listener: the workers of a cluster, or processes that share a port. */
export const SLOTS = 16

/** Whether this layout has such a name: nothing else in the folder is touched. */
export function isOfLayout(name: string): boolean {
  return LAYOUT.test(name)
}

export function listenerName(address: string, port: number, protocol: 'tcp' | 'udp' = 'tcp'): string {
  return isIPv4(address)
    ? `${protocol}4-${address}-${port}`
    : `${protocol}6-${mappedAddress(address).toString('hex')}-${port}`
}

/** Device and inode of the socket's file, in base 36. */
export function unixListenerName(device: string, inode: string): string {
  return `unix-${device}-${inode}`
}

/** `slot`: from 0 up to SLOTS - 1. */
export function slotName(listener: string, slot: number): string {
  return `${listener}.${slot}`
}

export function handoffName(id: Uint8Array): string {
  return `handoff-${Buffer.from(id).toString('hex')}`
}

/** `thread`: 32 hexadecimal digits. */
export function endpointsName(thread: string): string {
  return `endpoints-${thread}`
}

/** `id`: 16 bytes. */
export function newName(id: Uint8Array): string {
  return `.new-${Buffer.from(id).toString('hex')}`
}
