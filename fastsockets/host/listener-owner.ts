/**
 * The users that listen on a TCP port, by the kernel's table (proc(5), /proc/net/tcp). Another user's process that holds
 * a hashed port could otherwise serve connections that the kernel would give to another user's listener.
 */
import { readFileSync } from 'node:fs'
import { SocketAddress } from 'node:net'

const LISTENING = '0A'
// Fields of a line: number, local address, remote address, state, queues, timer, retransmits, uid.
const LOCAL = 1
const STATE = 3
const UID = 7

/** Whether each listener to which the kernel would give a connection to `address` and `port` is of user `uid`. */
export function listensAlone(uid: number, address: string, port: number, family: 4 | 6): boolean {
  try {
    const wildcard = family === 4 ? '0.0.0.0' : '::'
    const sought = [canonical(address, family), wildcard]
    const uids = uidsIn(`/proc/thread-self/net/tcp${family === 6 ? '6' : ''}`, family, sought, port)
    // A wildcard listener of IPv6 may accept connections of IPv4, too.
    if (family === 4) uids.push(...uidsIn('/proc/thread-self/net/tcp6', 6, ['::'], port))
    return uids.length > 0 && uids.every(one => one === uid)
  } catch {
    return false
  }
}

function uidsIn(file: string, family: 4 | 6, addresses: readonly string[], port: number): number[] {
  const uids: number[] = []
  for (const line of readFileSync(file, 'latin1').split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/)
    if (fields[STATE] !== LISTENING) continue
    const [address = '', portText = ''] = fields[LOCAL]?.split(':') ?? []
    if (Number.parseInt(portText, 16) === port && addresses.includes(addressOf(address, family)))
      uids.push(Number(fields[UID]))
  }
  return uids
}

/** `digits`: 32-bit words in the byte order of the machine, which is little-endian. */
function addressOf(digits: string, family: 4 | 6): string {
  const bytes = Buffer.from(digits, 'hex').swap32()
  if (family === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
  return canonical(groups.join(':'), 6)
}

function canonical(address: string, family: 4 | 6): string {
  return new SocketAddress({ address, family: `ipv${family}` }).address
}
