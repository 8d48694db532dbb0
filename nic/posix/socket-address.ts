/**
 * Internet addresses as structures of the C library, and as 16 bytes, with IPv4 mapped into IPv6.
 *
 *   sockaddr_in         0 family (u16)   2 port (network order)   4 address
 *   sockaddr_in6        0 family (u16)   2 port (network order)   4 flow   8 address   24 scope
 */
import { isIPv4, SocketAddress } from 'node:net'
import { AF_INET, AF_INET6 } from './constants.ts'

export const SOCKADDR_SIZE = 128
const SOCKADDR_PORT = 2
const SOCKADDR_V4 = 4
const SOCKADDR_V6 = 8

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
  bytes.writeUInt16LE(isV4 ? AF_INET : AF_INET6, 0)
  bytes.writeUInt16BE(port, SOCKADDR_PORT)
  if (isV4) address.copy(bytes, SOCKADDR_V4, MAPPED.length)
  else address.copy(bytes, SOCKADDR_V6)
  return bytes
}

/** The address as text, in the form of `socket.remoteAddress`; a mapped one as IPv4. */
export function textOfAddress(address: Buffer): string {
  if (isMapped(address)) return address.subarray(MAPPED.length).join('.')
  return new SocketAddress({ address: wordsOf(address), family: 'ipv6' }).address
}

function wordsOf(address: Buffer): string {
  const words = Array.from({ length: 8 }, (_, i) => address.readUInt16BE(2 * i).toString(16))
  return words.join(':')
}

/** The address in a sockaddr_in or sockaddr_in6, as 16 bytes. */
export function addressIn(structure: Buffer): Buffer {
  if (structure.readUInt16LE(0) === AF_INET6)
    return Buffer.from(structure.subarray(SOCKADDR_V6, SOCKADDR_V6 + 16))
  return Buffer.concat([MAPPED, structure.subarray(SOCKADDR_V4, SOCKADDR_V4 + 4)])
}
