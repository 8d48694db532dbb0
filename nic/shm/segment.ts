/**
 * The shared memory of one pair of interfaces: a sealed memfd with a ring each way.
 *
 *   0                        ring from the offering side to the connecting side
 *   ringBytes(size)          ring from the connecting side to the offering side
 *   2 * ringBytes(size)      overflow ring of the first, then of the second (overflow-memory.ts): sparse until used
 */
import type { Libc } from '../posix/libc.ts'
import { type Mapping, mapShared } from '../posix/mapping.ts'
import { assertSealed, createSealed, sealForGood } from '../posix/sealed-memory.ts'
import { overflowSizeOf, ringBytes } from '../ring/ring-layout.ts'

export function segmentBytes(ringSize: number): number {
  return overflowOffset(ringSize, 2)
}

/** Offset of the overflow ring of ring `index`. */
export function overflowOffset(ringSize: number, index: number): number {
  return 2 * ringBytes(ringSize) + index * overflowSizeOf(ringSize)
}

/** The descriptor of a new sealed segment. The caller closes it. */
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

/** Maps a segment after checking its seals: its maker, perhaps the peer, cannot truncate it while it is mapped. */
export function mapSegment(libc: Libc, fd: number, ringSize: number): Mapping {
  assertSealed(libc, fd, segmentBytes(ringSize), true)
  const length = segmentBytes(ringSize)
  return mapShared(libc, fd, length, length, true, overflowOffset(ringSize, 0))
}
