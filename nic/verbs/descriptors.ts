import { readlinkSync } from 'node:fs'
import { NicError } from '../errors.ts'
import { type Libc, systemError } from '../posix/libc.ts'

const F_GETFL = 3
const F_SETFL = 4
const O_NONBLOCK = 0o4000

/** Checks that the number at this offset is a descriptor, which shows that the layout is right. */
export function assertDescriptor(fd: number, what: RegExp, structure: string): void {
  let target = ''
  try {
    target = readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    // No such descriptor: the layout is wrong.
  }
  if (!what.test(target)) {
    throw new NicError(
      'ERR_NIC_UNAVAILABLE',
      `libibverbs keeps struct ${structure} in another way than is known here`,
    )
  }
}

export function setNonBlocking(libc: Libc, fd: number): void {
  const flags = libc.fcntl(fd, F_GETFL, 0)
  if (flags < 0 || libc.fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) throw systemError(libc, 'fcntl')
}
