import { markAsUntransferable } from 'node:worker_threads'
import { rangeError } from './errors.ts'

/** Offsets and lengths travel as 32-bit numbers. */
export const SEGMENT_MAX = 2 ** 32 - 1

/** The memory that peers may write to and get from. It never moves, and belongs to the endpoint until it is closed. */
export class Segment {
  readonly bytes: Uint8Array

  constructor(length: number) {
    if (!Number.isInteger(length) || length < 0 || length > SEGMENT_MAX) {
      throw rangeError(`a segment of ${length} bytes; the most is ${SEGMENT_MAX}`)
    }
    this.bytes = new Uint8Array(length)
    // Peers know the address: no other thread may come to own the memory, and free it.
    markAsUntransferable(this.bytes.buffer)
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
