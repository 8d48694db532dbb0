/**
 * The shared memory of one pair of interfaces: a sealed memfd with a ring each way.
 *
 *   0                        ring from the offering side to the connecting side
 *   ringBytes(size)          ring from the connecting side to the offering side
 */
import type { Libc } from '../posix/libc.ts'
import { type Mapping, mapShared } from '../posix/mapping.ts'
import { assertSealed, createSealed, sealForGood } from '../posix/sealed-memory.ts'
import { ringBytes } from '../ring/ring-layout.ts'

export function segmentBytes(ringSize: number): number {
  return 2 * ringBytes(ringSize)
}

/** A new sealed segment's descriptor; the caller closes it. */
export function createSegment(libc: Libc, ringSize: number): number {
  const fd = createSealed(libc, 'fastsockets', segmentBytes(ringSize))
  try {
    sealForGood(libc, fd, true)
    return fd
  } catch (error) {
    libc.close(fd)
    throw error
  }
}

/** Maps a segment that somebody else made, after checking that it cannot be taken away under us. */
export function mapSegment(libc: Libc, fd: number, ringSize: number): Mapping {
  assertSealed(libc, fd, segmentBytes(ringSize), true)
  return mapShared(libc, fd, segmentBytes(ringSize))
}
