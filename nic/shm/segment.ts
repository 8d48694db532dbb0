/**
 * The shared memory of one pair of interfaces: a sealed memfd with a ring each way.
 *
 *   0                        ring from the offering side to the connecting side
 *   ringBytes(size)          ring from the connecting side to the offering side
 *   2 * ringBytes(size)      overflow ring of the first, then that of the second (overflow-memory.ts): sparse until it is used
 */
import type { Libc } from '../posix/libc.ts'
import { type Mapping, mapShared } from '../posix/mapping.ts'
import { assertSealed, createSealed, sealForGood } from '../posix/sealed-memory.ts'
import { overflowSizeOf, ringBytes } from '../ring/ring-layout.ts'

export function segmentBytes(ringSize: number): number {
  return overflowOffset(ringSize, 2)
}

/** Where the overflow ring of the ring `index` begins. */
export function overflowOffset(ringSize: number, index: number): number {
  return 2 * ringBytes(ringSize) + index * overflowSizeOf(ringSize)
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
  const length = segmentBytes(ringSize)
  return mapShared(libc, fd, length, length, true, overflowOffset(ringSize, 0))
}
