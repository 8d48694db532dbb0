/** Unix socket pairs whose far end identifies the near end by a name. */
import { AF_UNIX, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM } from './constants.ts'
import { loadLibc, requireLibc, systemError } from './libc.ts'
import { isOwnUser } from './own-user.ts'
import { abstractAddress, peerCredentials } from './unix-socket.ts'

/** sizeof(sun_path) is 108; the zero byte of an abstract name takes one. */
const NAME_SIZE_MAX = 107
/** sizeof(struct sockaddr_un): family, then the name. */
const ADDRESS_SIZE = 110
const NAME_AT = 2

/**
 * The caller owns both descriptors. If `name` is given, the near end is bound to that abstract name; the holder of
 * the far end reads it with `nameOfNearEnd`. The near end stays unnamed if the name is too long or in use.
 */
export function socketPair(name?: string): { readonly near: number; readonly far: number } {
  const libc = requireLibc()
  const descriptors = new Int32Array(2)
  if (libc.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, descriptors) < 0)
    throw systemError(libc, 'socketpair')
  const [near = -1, far = -1] = descriptors
  if (name !== undefined && name.length <= NAME_SIZE_MAX) {
    const address = abstractAddress(name)
    libc.bind(near, address, address.length)
  }
  return { near, far }
}

/**
 * The abstract name of the near end. `fd` is the far end of a pair that this process's user or its parent made.
 * Undefined for any other socket: an accepted connection has its listener's name, and its peer may have bound any
 * name.
 */
export function nameOfNearEnd(fd: number): string | undefined {
  const { libc } = loadLibc()
  if (libc === undefined || fd < 0) return undefined
  if (nameOf((address, size) => libc.getsockname(fd, address, size)) !== '') return undefined
  const name = nameOf((address, size) => libc.getpeername(fd, address, size))
  if (!name?.startsWith('\0')) return undefined
  // For a pair SO_PEERCRED reports the process that called socketpair (unix(7)).
  const { pid, uid } = peerCredentials(libc, fd)
  return isOwnUser(uid) || (pid > 0 && pid === process.ppid) ? name.slice(1) : undefined
}

/** The name with the zero byte of an abstract one; empty for an unnamed socket; undefined if it is no unix socket. */
function nameOf(ask: (address: Buffer, size: Buffer) => number): string | undefined {
  const address = Buffer.alloc(ADDRESS_SIZE)
  const size = Buffer.alloc(4)
  size.writeUInt32LE(ADDRESS_SIZE)
  if (ask(address, size) < 0 || address.readUInt16LE() !== AF_UNIX) return undefined
  return address.toString('latin1', NAME_AT, Math.min(size.readUInt32LE(), ADDRESS_SIZE))
}
