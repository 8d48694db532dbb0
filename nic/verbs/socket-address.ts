/** Internet addresses as structures of the C library, and as 16 bytes, with IPv4 mapped into IPv6. */
import { isIPv4 } from 'node:net'
import {
  FAMILY_V4,
  FAMILY_V6,
  SOCKADDR_PORT,
  SOCKADDR_SIZE,
  SOCKADDR_V4,
  SOCKADDR_V6,
} from './manager-layout.ts'

export const MAPPED = Buffer.from('00000000000000000000ffff', 'hex')

export function mappedAddress(address: string): Buffer {
  if (isIPv4(address)) return Buffer.concat([MAPPED, Buffer.from(address.split('.').map(Number))])
  // The URL parser expands mapped addresses; the parts around `::` are padded.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const middle = Array.from({ length: 8 - left.length - right.length }, () => '0')
  const bytes = Buffer.alloc(16)
  for (const [i, group] of [...left, ...middle, ...right].entries())
    bytes.writeUInt16BE(Number.parseInt(group, 16), 2 * i)
  return bytes
}

export function isMapped(address: Buffer): boolean {
  return address.subarray(0, MAPPED.length).equals(MAPPED)
}

/** A sockaddr_in or sockaddr_in6. */
export function socketAddress(address: Buffer, port: number): Buffer {
  const bytes = Buffer.alloc(SOCKADDR_SIZE)
  const isV4 = isMapped(address)
  bytes.writeUInt16LE(isV4 ? FAMILY_V4 : FAMILY_V6, 0)
  bytes.writeUInt16BE(port, SOCKADDR_PORT)
  if (isV4) address.copy(bytes, SOCKADDR_V4, MAPPED.length)
  else address.copy(bytes, SOCKADDR_V6)
  return bytes
}
