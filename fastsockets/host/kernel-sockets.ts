/** The kernel's tables of TCP and UDP sockets in a network namespace (proc(5), /proc/net/tcp, /proc/net/udp). */
import { closeSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs'
import { SocketAddress } from 'node:net'

export type Protocol = 'tcp' | 'udp'

export interface KernelSocket {
  readonly local: string
  readonly localPort: number
  readonly remote: string
  readonly remotePort: number
  readonly isListening: boolean
  /** The effective user that made it. */
  readonly uid: number
  /** As in the links below /proc/PID/fd; 0 once no process has it. */
  readonly inode: number
}

const LISTENING = '0A'
// Fields of a line: number, local address, remote address, state, queues, timer, retransmits, uid, timeout, inode.
const LOCAL = 1
const REMOTE = 2
const STATE = 3
const UID = 7
const INODE = 9

/** Those of the network namespace of `pid`, by default our own. Throws if there is no /proc. */
export function* kernelSockets(
  family: 4 | 6,
  pid: number | 'thread-self' = 'thread-self',
  protocol: Protocol = 'tcp',
): Generator<KernelSocket> {
  const text = readFileSync(`/proc/${pid}/net/${protocol}${family === 6 ? '6' : ''}`, 'latin1')
  for (const line of text.split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/)
    if (fields.length <= INODE) continue
    const [local, localPort] = placeOf(fields[LOCAL] as string, family)
    const [remote, remotePort] = placeOf(fields[REMOTE] as string, family)
    const isListening = fields[STATE] === LISTENING
    yield {
      local,
      localPort,
      remote,
      remotePort,
      isListening,
      uid: Number(fields[UID]),
      inode: Number(fields[INODE]),
    }
  }
}

/**
 * Whether a process of our network namespace listens at one of these ports. Cheap: the kernel lists listeners first. Undefined without
 * /proc, and where the kernel lists more than `LISTED_MAX` bytes before: another user may open many listeners.
 */
export function isListened(ports: readonly number[]): boolean | undefined {
  if (ports.length === 0) return false
  try {
    const found = [4, 6].map(family => isListenedBy(ports, family))
    return found.includes(true) || (found.includes(undefined) ? undefined : false)
  } catch {
    return undefined
  }
}

/** As many bytes as the kernel gives at once. */
const PIECE = 4096
/** About 1,700 listeners. */
const LISTED_MAX = 256 * 1024

function isListenedBy(ports: readonly number[], family: number): boolean | undefined {
  const fd = openSync(`/proc/thread-self/net/tcp${family === 6 ? '6' : ''}`, 'r')
  try {
    const piece = Buffer.alloc(PIECE)
    let rest = ''
    let left = LISTED_MAX
    for (let length = readSync(fd, piece); length > 0; length = readSync(fd, piece)) {
      if (left <= 0) return undefined
      left -= length
      const lines = (rest + piece.toString('latin1', 0, length)).split('\n')
      rest = lines.pop() as string
      for (const line of lines) {
        const fields = line.trim().split(/\s+/)
        const [, port = ''] = (fields[LOCAL] as string).split(':')
        const isHeading = port === ''
        if (!isHeading && fields[STATE] !== LISTENING) return false
        if (!isHeading && ports.includes(Number.parseInt(port, 16))) return true
      }
    }
    return false
  } finally {
    closeSync(fd)
  }
}

/** The tables of the network namespaces of processes, each read once. */
export class KernelTables {
  /** By protocol and namespace. */
  readonly #known = new Map<string, readonly KernelSocket[]>()

  /** Throws if the process is gone, or may not be inspected. */
  of(pid: number, protocol: Protocol): readonly KernelSocket[] {
    const key = `${protocol} ${readlinkSync(`/proc/${pid}/ns/net`)}`
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const all = ([4, 6] as const).flatMap(family => [...kernelSockets(family, pid, protocol)])
    this.#known.set(key, all)
    return all
  }
}

/** Whether a process of this network namespace listens at an address of this host; undefined if the kernel does not say. */
export function isListenedAt(address: string, port: number): boolean | undefined {
  const places = [canonical(address, address.includes(':') ? 6 : 4), `::ffff:${address}`, '0.0.0.0', '::']
  try {
    for (const family of [4, 6] as const)
      for (const { local, localPort, isListening } of kernelSockets(family))
        if (isListening && localPort === port && places.includes(local)) return true
    return false
  } catch {
    return undefined
  }
}

/** The address in the form that Node has for it. */
export function canonical(address: string, family: 4 | 6): string {
  return new SocketAddress({ address, family: `ipv${family}` }).address
}

/** `text`: 32-bit words in the byte order of the machine, which is little-endian, a colon, the port. */
function placeOf(text: string, family: 4 | 6): [string, number] {
  const [digits = '', port = ''] = text.split(':')
  const bytes = Buffer.from(digits, 'hex').swap32()
  const groups = (): string[] => Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
  return [family === 4 ? bytes.join('.') : canonical(groups().join(':'), 6), Number.parseInt(port, 16)]
}
