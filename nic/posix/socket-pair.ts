/** Two ends of a unix connection, of which one can be told by its name. */
import { AF_UNIX, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM } from './constants.ts'
import { loadLibc, requireLibc, systemError } from './libc.ts'
import { abstractAddress } from './unix-socket.ts'

/** What the kernel takes, less the zero byte that makes a name abstract. */
const NAME_SIZE_MAX = 107
/** struct sockaddr_un: family, then the name. */
const ADDRESS_SIZE = 110
const NAME_AT = 3

/**
 * The caller owns both descriptors. The near end gets `name`, an abstract one, as long as the kernel can take it and nobody
 * else has it: whoever holds the far end reads it by `nameOfPeer`.
 */
export function socketPair(name: string): { readonly near: number; readonly far: number } {
  const libc = requireLibc()
  const descriptors = new Int32Array(2)
  if (libc.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, descriptors) < 0)
    throw systemError(libc, 'socketpair')
  const [near = -1, far = -1] = descriptors
  if (name.length <= NAME_SIZE_MAX) {
    const address = abstractAddress(name)
    libc.bind(near, address, address.length)
  }
  return { near, far }
}

/** The abstract name of the other end of a unix connection; undefined if it has none, or there is no such connection. */
export function nameOfPeer(fd: number): string | undefined {
  const { libc } = loadLibc()
  if (libc === undefined || fd < 0) return undefined
  const address = Buffer.alloc(ADDRESS_SIZE)
  const size = Buffer.alloc(4)
  size.writeUInt32LE(ADDRESS_SIZE)
  if (libc.getpeername(fd, address, size) < 0) return undefined
  const end = Math.min(size.readUInt32LE(), ADDRESS_SIZE)
  const isAbstract = end > NAME_AT && address.readUInt16LE() === AF_UNIX && address[2] === 0
  return isAbstract ? address.toString('latin1', NAME_AT, end) : undefined
}
