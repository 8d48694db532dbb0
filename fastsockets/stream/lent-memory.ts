/**
 * Memory for pieces on their way to native code, which copies what it is given: such pieces need no memory of their own, which
 * would take longer to make than the copy. Small ones lie one behind the other in shared memory. Larger ones are lent for as
 * long as native code takes: the next one then lies where the last one did, which the core's caches know, and nothing is left
 * to the collector.
 */
import { allocateFresh } from '../host/fresh-memory.ts'
import { FRAMING_MAX, SEGMENT_MAX } from './stream-layout.ts'

/** The longest piece that is lent. */
export const LENT_MAX = SEGMENT_MAX + FRAMING_MAX
/** The shortest: a piece that a reader leaves waiting holds no more than twice its length. */
export const LENT_MIN = LENT_MAX / 2
/** No piece is at the beginning of its memory: `isShared` tells by that. */
const START = 8
const SIZE = START + LENT_MAX
/** What is kept for the next pieces, 1 MiB: more than comes in a turn for one socket. */
const KEPT_MAX = 16
const SHARED_SIZE = 64 * 1024
const SHARED_PIECE_MAX = 8 * 1024
/** What V8 keeps among its objects: memory of its own that costs nothing. */
const IN_HEAP_MAX = 64

const kept: ArrayBuffer[] = []
let shared = Buffer.alloc(0)
let sharedAt = 0

export function allocateForNative(length: number): Buffer {
  if (length > IN_HEAP_MAX && length < SHARED_PIECE_MAX) return allocateShared(length)
  return length >= LENT_MIN && length <= LENT_MAX ? lend(length) : allocateFresh(length)
}

/** Whether other pieces lie in the same memory, now or later: such a piece is not for a program. */
export function isShared(piece: Buffer): boolean {
  return piece.byteOffset > 0
}

/** Of `LENT_MIN` to `LENT_MAX` bytes, with any content. */
export function lend(length: number): Buffer<ArrayBuffer> {
  // Native code makes as much again for its copy.
  return Buffer.from(kept.pop() ?? new ArrayBuffer(SIZE), START, length)
}

/** The piece is not used any more. A piece that was not lent is its owner's. */
export function endLoan(piece: Buffer): void {
  const { buffer, byteOffset } = piece
  if (byteOffset === START && buffer.byteLength === SIZE && kept.length < KEPT_MAX)
    kept.push(buffer as ArrayBuffer)
}

function allocateShared(length: number): Buffer {
  if (sharedAt + length > shared.length) {
    shared = allocateFresh(SHARED_SIZE)
    sharedAt = START
  }
  sharedAt += length
  return shared.subarray(sharedAt - length, sharedAt)
}
