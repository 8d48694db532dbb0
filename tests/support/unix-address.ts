/** Sockets that are bound and nothing else, as a service manager has them: Node would begin to accept, and has no datagrams. */
import koffi from 'koffi'
import { AF_UNIX, SOCK_CLOEXEC, SOCK_STREAM } from '../../nic/posix/constants.ts'
import { requireLibc } from '../../nic/posix/libc.ts'

export const SOCK_DGRAM = 2
const BACKLOG = 16

type Bind = (fd: number, address: Uint8Array, length: number) => number
type Listen = (fd: number, backlog: number) => number

/** A descriptor, which the caller closes. A stream listens, but accepts no connection. */
export function bindUnix(path: string, type: typeof SOCK_STREAM | typeof SOCK_DGRAM): number {
  const library = koffi.load(null)
  const bind: Bind = library.func('int bind(int fd, const void *address, unsigned int length)')
  const listen: Listen = library.func('int listen(int fd, int backlog)')
  const fd = requireLibc().socket(AF_UNIX, type | SOCK_CLOEXEC, 0)
  const address = Buffer.from(`\x01\x00${path}\0`)
  if (bind(fd, address, address.length) !== 0) throw new Error(`bind ${path}`)
  if (type === SOCK_STREAM && listen(fd, BACKLOG) !== 0) throw new Error(`listen ${path}`)
  return fd
}
