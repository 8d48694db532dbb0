/**
 * The users that listen on a TCP port, by the kernel's table. Another user's process that holds a hashed port could otherwise
 * serve connections that the kernel would give to another user's listener.
 */
import { canonical, kernelSockets } from './kernel-sockets.ts'

/** Whether each listener to which the kernel would give a connection to `address` and `port` is of user `uid`. */
export function listensAlone(uid: number, address: string, port: number, family: 4 | 6): boolean {
  try {
    const wildcard = family === 4 ? '0.0.0.0' : '::'
    const uids = uidsOf(family, [canonical(address, family), wildcard], port)
    // A wildcard listener of IPv6 may accept connections of IPv4, too.
    if (family === 4) uids.push(...uidsOf(6, ['::'], port))
    return uids.length > 0 && uids.every(one => one === uid)
  } catch {
    return false
  }
}

function uidsOf(family: 4 | 6, addresses: readonly string[], port: number): number[] {
  const uids: number[] = []
  for (const { isListening, local, localPort, uid } of kernelSockets(family))
    if (isListening && localPort === port && addresses.includes(local)) uids.push(uid)
  return uids
}
