/**
 * Sealed memfds: memory whose size nobody can change, to be mapped by two processes. A peer that could truncate it could
 * kill us with SIGBUS. It has no name, so nothing is left behind when both processes are killed.
 */
import { closeSync, fchmodSync, fstatSync, openSync } from 'node:fs'
import { NicError } from '../errors.ts'
import {
  F_ADD_SEALS,
  F_GET_SEALS,
  F_GETFL,
  F_SEAL_FUTURE_WRITE,
  F_SEAL_GROW,
  F_SEAL_SEAL,
  F_SEAL_SHRINK,
  F_SEAL_WRITE,
  MFD_ALLOW_SEALING,
  MFD_CLOEXEC,
  O_ACCMODE,
  O_RDWR,
  TMPFS_MAGIC,
} from './constants.ts'
import { type Libc, systemError } from './libc.ts'

const SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW
const WRITE_SEALS = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE
const OWNER_ONLY = 0o600
/** struct statfs: the type of the file system comes first. */
const STATFS_SIZE = 120
const statfs = Buffer.alloc(STATFS_SIZE)

/** A new memfd of that size; the caller closes it, and adds the last seals with `sealForGood`. */
export function createSealed(libc: Libc, name: string, length: number): number {
  const fd = libc.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)
  if (fd < 0) throw systemError(libc, 'memfd_create')
  if (libc.ftruncate(fd, length) < 0 || libc.fcntl(fd, F_ADD_SEALS, SIZE_SEALS) < 0) {
    const error = systemError(libc, 'memfd_create')
    libc.close(fd)
    throw error
  }
  return fd
}

/** No further seals. Unless others `mayWrite`, only mappings that exist already can write from now on. */
export function sealForGood(libc: Libc, fd: number, mayWrite: boolean): void {
  const seals = mayWrite ? F_SEAL_SEAL : F_SEAL_SEAL | F_SEAL_FUTURE_WRITE
  if (libc.fcntl(fd, F_ADD_SEALS, seals) < 0) throw systemError(libc, 'fcntl')
}

/**
 * The same memory by a descriptor of Node's own, which goes with the thread: a worker may be terminated without a word.
 * Closes `fd`. The caller closes the new one by `node:fs`.
 */
export function ownedByThread(libc: Libc, fd: number): number {
  try {
    const owned = openSync(`/proc/self/fd/${fd}`, 'r+')
    try {
      fchmodSync(owned, OWNER_ONLY)
      return owned
    } catch (error) {
      closeSync(owned)
      throw error
    }
  } finally {
    libc.close(fd)
  }
}

/**
 * Whether a descriptor that somebody else made is ordinary sealable memory, by questions that the kernel answers alone. Of
 * anything else nobody knows what `fstat`, `mmap` or `close` would wait for: a FUSE daemon, or a socket's linger time.
 */
export function isSealable(libc: Libc, fd: number): boolean {
  if (libc.fcntl(fd, F_GET_SEALS, 0) < 0) return false
  return libc.fstatfs(fd, statfs) === 0 && statfs.readUInt32LE(0) === TMPFS_MAGIC
}

/** Throws unless `fd`, which is sealable, is memory of that size for good, and may be written or not as was said. */
export function assertSealed(libc: Libc, fd: number, length: number, mayWrite: boolean): void {
  const seals = libc.fcntl(fd, F_GET_SEALS, 0)
  const mode = libc.fcntl(fd, F_GETFL, 0) & O_ACCMODE
  if (seals < 0 || (seals & SIZE_SEALS) !== SIZE_SEALS) throw violation('is not sealed')
  // Said here and not by `mmap`: some kernels see this only when the old pages of the range are gone.
  if (mayWrite && ((seals & WRITE_SEALS) !== 0 || mode !== O_RDWR)) throw violation('may not be written')
  if (!mayWrite && (seals & WRITE_SEALS) === 0) throw violation('may be written')
  if (mode !== O_RDWR && mode !== 0) throw violation('may not be read')
  if (fstatSync(fd).size !== length) throw violation('has another size than announced')
}

function violation(what: string): NicError {
  return new NicError('ERR_NIC_PROTOCOL_VIOLATION', `the shared segment ${what}`)
}
