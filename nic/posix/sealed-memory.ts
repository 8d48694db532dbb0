/**
 * Sealed memfds: memory for two processes whose size no process can change. A peer that could truncate it could kill
 * this process with SIGBUS. A memfd has no name, so nothing is left behind when both processes are killed.
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
/** sizeof(struct statfs), 64-bit. Its first word is the type of the file system. */
const STATFS_SIZE = 120
const statfs = Buffer.alloc(STATFS_SIZE)

/** A new memfd of `length` bytes. The caller closes it, and adds the last seals with `sealForGood`. */
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

/** Forbids further seals. Unless peers `mayWrite`, only mappings that exist before this call stay writable. */
export function sealForGood(libc: Libc, fd: number, mayWrite: boolean): void {
  const seals = mayWrite ? F_SEAL_SEAL : F_SEAL_SEAL | F_SEAL_FUTURE_WRITE
  if (libc.fcntl(fd, F_ADD_SEALS, seals) < 0) throw systemError(libc, 'fcntl')
}

/**
 * Reopens the memory with a descriptor that Node opened, and closes `fd`. Node closes such descriptors when a worker is
 * terminated, which runs no code of ours. The caller closes the new descriptor with `node:fs`.
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
 * Whether a peer's descriptor is ordinary sealable memory, by calls that the kernel answers without waiting. For any
 * other file `fstat`, `mmap` or `close` may block, for a FUSE daemon or for a socket's linger time.
 */
export function isSealable(libc: Libc, fd: number): boolean {
  if (libc.fcntl(fd, F_GET_SEALS, 0) < 0) return false
  return libc.fstatfs(fd, statfs) === 0 && statfs.readUInt32LE(0) === TMPFS_MAGIC
}

/**
 * Throws unless the size of `fd` is sealed to `length` and its seals and mode agree with `mayWrite`. `isSealable`
 * comes first.
 */
export function assertSealed(libc: Libc, fd: number, length: number, mayWrite: boolean): void {
  const seals = libc.fcntl(fd, F_GET_SEALS, 0)
  const mode = libc.fcntl(fd, F_GETFL, 0) & O_ACCMODE
  if (seals < 0 || (seals & SIZE_SEALS) !== SIZE_SEALS) throw violation('is not sealed')
  // Checked before `mmap`: some kernels refuse the mapping only after they have removed the old pages of the range.
  if (mayWrite && ((seals & WRITE_SEALS) !== 0 || mode !== O_RDWR)) throw violation('may not be written')
  if (!mayWrite && (seals & WRITE_SEALS) === 0) throw violation('may be written')
  if (mode !== O_RDWR && mode !== 0) throw violation('may not be read')
  if (fstatSync(fd).size !== length) throw violation('has another size than announced')
}

function violation(what: string): NicError {
  return new NicError('ERR_NIC_PROTOCOL_VIOLATION', `the shared segment ${what}`)
}
