import { markAsUntransferable } from 'node:worker_threads'
import type { Driver } from '../nic/index.ts'
import { rangeError } from './errors.ts'

/** Offsets and lengths travel as 32-bit numbers. */
export const SEGMENT_MAX = 2 ** 32 - 1

/** What peers may do with a segment: `read` allows gets, `write` long messages too. */
export type SegmentAccess = 'read' | 'read-write'

/**
 * The memory that peers may write to and get from. It never moves, and belongs to the endpoint until it is closed. Where a driver
 * has memory of its own that peers can map, it is of that.
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
    // Peers reach the memory: no other thread may come to own it, and free it. What a driver allocates Node transfers to nobody
    // anyway; Node 26 aborts at its end if that is marked as well.
    if (shared === undefined) markAsUntransferable(this.bytes.buffer)
  }

  contains(offset: number, length: number): boolean {
    return offset + length <= this.bytes.length
  }
}

/** A region that no segment could hold is a mistake of the caller. */
export function assertRegion(offset: number, length: number): void {
  if (!Number.isInteger(offset) || !Number.isInteger(length) || offset < 0 || length < 0) {
    throw rangeError(`a region of ${String(length)} bytes at ${String(offset)}`)
  }
  if (offset + length > SEGMENT_MAX) {
    throw rangeError(`a region that ends at ${offset + length}; the most is ${SEGMENT_MAX}`)
  }
}

/** So is a get of more than `most` bytes, or of more than our own segment, of `ownLength` bytes, has room for. */
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
