/** The user of the other process of a connection within this host, as the kernel lists it in /proc/net/tcp (proc(5)). */
import { readFileSync } from 'node:fs'
import { isIPv4, type Socket } from 'node:net'
import { isOwnUser } from '../posix/own-user.ts'

/** Columns of a row. Rows of other states than ESTABLISHED may show user 0 for any user. */
const LOCAL = 1
const REMOTE = 2
const STATE = 3
const USER = 7
const ESTABLISHED = '01'
const LOOPBACK_6 = '00000000000000000000000001000000'
const MAPPED_PREFIX = '0000000000000000FFFF0000'
const MAPPED_TEXT = '::ffff:'

/** True for the addresses of this host that no other host can use. */
export function isLoopback(address: string | undefined): boolean {
  const text = address?.startsWith(MAPPED_TEXT) ? address.slice(MAPPED_TEXT.length) : address
  return text === '::1' || (text !== undefined && isIPv4(text) && text.startsWith('127.'))
}

/** Whether the other end of this loopback connection is a process of our own user. */
export function isPeerOwnUser(socket: Socket): boolean {
  const { localAddress, localPort, remoteAddress, remotePort } = socket
  if (!isLoopback(localAddress) || !isLoopback(remoteAddress)) return false
  const ours = namesOf(localAddress as string, localPort as number)
  const theirs = namesOf(remoteAddress as string, remotePort as number)
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const row of rowsOf(file)) {
      const columns = row.trim().split(/\s+/)
      if (columns[STATE] !== ESTABLISHED) continue
      if (theirs.includes(columns[LOCAL] as string) && ours.includes(columns[REMOTE] as string))
        return isOwnUser(Number(columns[USER]))
    }
  }
  return false
}

function rowsOf(file: string): string[] {
  try {
    return readFileSync(file, 'latin1').split('\n').slice(1)
  } catch {
    return []
  }
}

/** An address as the kernel writes it: 32-bit words in the byte order of the host, which is little-endian. */
function namesOf(address: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const text = address.startsWith(MAPPED_TEXT) ? address.slice(MAPPED_TEXT.length) : address
  if (!isIPv4(text)) return [LOOPBACK_6 + suffix]
  const word = Buffer.from(text.split('.').map(Number)).reverse().toString('hex').toUpperCase()
  return [word + suffix, MAPPED_PREFIX + word + suffix]
}
