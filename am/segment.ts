import { markAsUntransferable } from 'node:worker_threads'
import type { Driver } from '../nic/index.ts'
import { rangeError } from './errors.ts'

/** Offsets and lengths travel as 32-bit numbers. */
export const SEGMENT_MAX = 2 ** 32 - 1

/** `read`: peers may get from the segment. `read-write`: they may also send long messages to it. */
export type SegmentAccess = 'read' | 'read-write'

/**
 * The memory that peers may write to and get from. It never moves; the endpoint owns it until it is closed. If a
 * driver allocates memory that peers can map, the segment is of that memory.
 */
export class Segment {
  readonly bytes: Uint8Array
  /** Peers may only get from it. */
  readonly isReadOnly: boolean

  constructor(length: number, drivers: readonly Driver[] = [], access: SegmentAccess = 'read-write') {
    if (!Number.isInteger(length) || length < 0 || length > SEGMENT_MAX) {
      throw rangeError(`a segment of ${length} bytes; the most is ${SEGMENT_MAX}`)
    }
    this.isReadOnly = access === 'read'
    const driver = length > 0 ? drivers.find(({ allocate }) => allocate !== undefined) : undefined
    const shared = driver?.allocate?.(length, !this.isReadOnly)
    this.bytes = shared ?? new Uint8Array(length)
    // Peers reach the memory: no other thread may come to own it, and free it. Node never transfers memory that a
    // driver allocated; Node 26 aborts at exit if that is marked as well.
    if (shared === undefined) markAsUntransferable(this.bytes.buffer)
  }

  contains(offset: number, length: number): boolean {
    return offset + length <= this.bytes.length
  }
}

/** Throws on a region that no segment can hold. */
export function assertRegion(offset: number, length: number): void {
  if (!Number.isInteger(offset) || !Number.isInteger(length) || offset < 0 || length < 0) {
    throw rangeError(`a region of ${String(length)} bytes at ${String(offset)}`)
  }
  if (offset + length > SEGMENT_MAX) {
    throw rangeError(`a region that ends at ${offset + length}; the most is ${SEGMENT_MAX}`)
  }
}

/** Throws on a get of more than `most` bytes, or beyond the end of our own segment of `ownLength` bytes. */
export function assertGet(
  offset: number,
  length: number,
  into: number,
  most: number,
  ownLength: number,
): void {
  assertRegion(offset, length)
  assertRegion(into, length)
  if (length > most) throw rangeError(`a get of ${length} bytes; the most is ${most}`)
  if (into + length > ownLength) {
    throw rangeError(`a get into ${into}..${into + length} of a segment of ${ownLength} bytes`)
  }
}
