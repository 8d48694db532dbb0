import { readFileSync } from 'node:fs'

const TABLES = ['/proc/net/udp', '/proc/net/udp6']
/** proc(5): the local address and port of each line, in hexadecimal. */
const LOCAL_PORT = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) /gm

/**
 * Whether exactly one UDP socket of this network namespace has the port. Otherwise the kernel chooses by addresses which of them
 * receives a datagram, and might give a marker to a program that does not know it.
 */
export function isAloneOnPort(port: number): boolean {
  const asked = port.toString(16).toUpperCase().padStart(4, '0')
  let count = 0
  for (const table of TABLES) {
    try {
      for (const [, found] of readFileSync(table, 'latin1').matchAll(LOCAL_PORT)) if (found === asked) count++
    } catch {
      // IPv6 may be missing.
    }
  }
  return count === 1
}
