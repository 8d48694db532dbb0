/**
 * The shared memory of one pair of interfaces: a memfd with a ring each way.
 *
 *   0                        ring from the offering side to the connecting side
 *   ringBytes(size)          ring from the connecting side to the offering side
 *
 * It is sealed against shrinking and growing before anybody else sees it: a peer that could truncate it could kill us
 * with SIGBUS. The receiver checks the seals and the size for the same reason. It has no name, so nothing is left
 * behind when both processes are killed.
 */
import { fstatSync } from 'node:fs'
import { NicError } from '../errors.ts'
import {
  F_ADD_SEALS,
  F_GET_SEALS,
  F_SEAL_FUTURE_WRITE,
  F_SEAL_GROW,
  F_SEAL_SEAL,
  F_SEAL_SHRINK,
  F_SEAL_WRITE,
  MFD_ALLOW_SEALING,
  MFD_CLOEXEC,
} from '../posix/constants.ts'
import { type Libc, systemError } from '../posix/libc.ts'
import { type Mapping, mapShared } from '../posix/mapping.ts'
import { ringBytes } from '../ring/ring-layout.ts'

const SEALS = F_SEAL_SHRINK | F_SEAL_GROW
const WRITE_SEALS = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE

export function segmentBytes(ringSize: number): number {
  return 2 * ringBytes(ringSize)
}

/** A new sealed segment's descriptor; the caller closes it. */
export function createSegment(libc: Libc, ringSize: number): number {
  const fd = libc.memfd_create('fastsockets', MFD_CLOEXEC | MFD_ALLOW_SEALING)
  if (fd < 0) throw systemError(libc, 'memfd_create')
  if (
    libc.ftruncate(fd, segmentBytes(ringSize)) < 0 ||
    libc.fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0
  ) {
    const error = systemError(libc, 'memfd_create')
    libc.close(fd)
    throw error
  }
  return fd
}

/** Maps a segment that somebody else made, after checking that it cannot be taken away under us. */
export function mapSegment(libc: Libc, fd: number, ringSize: number): Mapping {
  const seals = libc.fcntl(fd, F_GET_SEALS, 0)
  if (seals < 0 || (seals & SEALS) !== SEALS) {
    throw new NicError('ERR_NIC_PROTOCOL_VIOLATION', 'the shared segment is not sealed')
  }
  // Some kernels see this only when the old pages of the range are gone.
  if ((seals & WRITE_SEALS) !== 0) {
    throw new NicError('ERR_NIC_PROTOCOL_VIOLATION', 'the shared segment may not be written')
  }
  if (fstatSync(fd).size !== segmentBytes(ringSize)) {
    throw new NicError('ERR_NIC_PROTOCOL_VIOLATION', 'the shared segment has another size than announced')
  }
  return mapShared(libc, fd, segmentBytes(ringSize))
}
