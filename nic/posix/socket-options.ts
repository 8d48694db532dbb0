/** Options of a bound socket, asked from the kernel: a program or its parent may have set them without Node. */
import { IPPROTO_IPV6, IPV6_V6ONLY, SO_REUSEPORT, SOL_SOCKET } from './constants.ts'
import { loadLibc } from './libc.ts'

/** True for an IPv6 socket that accepts no IPv4 connections at mapped addresses. */
export function isIpv6Only(fd: number): boolean {
  return isOn(fd, IPPROTO_IPV6, IPV6_V6ONLY)
}

/** True if sockets of the same user may bind the same port: the kernel distributes connections among all of them. */
export function sharesPort(fd: number): boolean {
  return isOn(fd, SOL_SOCKET, SO_REUSEPORT)
}

/** False also if the socket's family has no such option. */
function isOn(fd: number, level: number, name: number): boolean {
  const { libc } = loadLibc()
  if (libc === undefined) return false
  const value = Buffer.alloc(4)
  const length = Buffer.alloc(4)
  length.writeInt32LE(value.length)
  return libc.getsockopt(fd, level, name, value, length) === 0 && value.readInt32LE() !== 0
}
