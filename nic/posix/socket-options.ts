/** How the kernel has bound a socket. Whoever made it may have set this by other means than Node's. */
import { IPPROTO_IPV6, IPV6_V6ONLY, SO_REUSEPORT, SOL_SOCKET } from './constants.ts'
import { loadLibc } from './libc.ts'

/** It is IPv6, and takes no IPv4 connections at mapped addresses. */
export function isIpv6Only(fd: number): boolean {
  return isOn(fd, IPPROTO_IPV6, IPV6_V6ONLY)
}

/** Others of the same user may be bound to its port, too: the kernel spreads connections over all of them. */
export function sharesPort(fd: number): boolean {
  return isOn(fd, SOL_SOCKET, SO_REUSEPORT)
}

/** A socket of another family has no such option: it is not on. */
function isOn(fd: number, level: number, name: number): boolean {
  const { libc } = loadLibc()
  if (libc === undefined) return false
  const value = Buffer.alloc(4)
  const length = Buffer.alloc(4)
  length.writeInt32LE(value.length)
  return libc.getsockopt(fd, level, name, value, length) === 0 && value.readInt32LE() !== 0
}
