/**
 * Memory for pieces on their way to native code, which copies them: allocating memory for each would take longer than
 * the copy. Small pieces share memory. Larger ones are lent while native code uses them: the next piece then has the
 * same memory, which is in the core's caches, and the collector has no work.
 */
import { allocateFresh } from '../host/fresh-memory.ts'
import { FRAMING_MAX, SEGMENT_MAX } from './stream-layout.ts'

/** The longest piece that is lent. */
export const LENT_MAX = SEGMENT_MAX + FRAMING_MAX
/** The shortest piece that is lent: an unread piece occupies at most twice its length. */
export const LENT_MIN = LENT_MAX / 2
/** No piece is at the beginning of its memory: `isShared` relies on that. */
const START = 8
const SIZE = START + LENT_MAX
/** Most memory that is kept for later pieces, 1 MiB: more than a turn brings for one socket. */
const KEPT_MAX = 16
const SHARED_SIZE = 64 * 1024
const SHARED_PIECE_MAX = 8 * 1024
/** V8 allocates such small memory in its heap, at no cost. */
const IN_HEAP_MAX = 64

const kept: ArrayBuffer[] = []
let shared = Buffer.alloc(0)
let sharedAt = 0

export function allocateForNative(length: number): Buffer {
  if (length > IN_HEAP_MAX && length < SHARED_PIECE_MAX) return allocateShared(length)
  return length >= LENT_MIN && length <= LENT_MAX ? lend(length) : allocateFresh(length)
}

/** True if other pieces have the same memory, now or later: programs must not get such a piece. */
export function isShared(piece: Buffer): boolean {
  return piece.byteOffset > 0
}

/** A piece of `LENT_MIN` to `LENT_MAX` bytes, not initialised. */
export function lend(length: number): Buffer<ArrayBuffer> {
  // Native code allocates the same size for its copy.
  return Buffer.from(kept.pop() ?? new ArrayBuffer(SIZE), START, length)
}

/** Ends the use of a piece. Does nothing for a piece that was not lent. */
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
