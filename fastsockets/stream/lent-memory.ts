/**
 * Memory for larger pieces on their way to native code, which copies what it is given: lent for as long as that takes. The next
 * piece then lies where the last one did, which the core's caches know, and nothing is left to the collector.
 */
import { noteFresh } from '../host/fresh-memory.ts'
import { FRAMING_MAX, SEGMENT_MAX } from './stream-layout.ts'

/** The longest piece. */
export const LENT_MAX = SEGMENT_MAX + FRAMING_MAX
/** The shortest: a piece that a reader leaves waiting holds no more than twice its length. */
export const LENT_MIN = LENT_MAX / 2
/** None is at the beginning of its memory: it is not for a program (`isShared` in posted-bytes.ts). */
const START = 8
const SIZE = START + LENT_MAX
/** What is kept for the next pieces, 1 MiB: more than comes in a turn for one socket. */
const KEPT_MAX = 16

const kept: ArrayBuffer[] = []

/** Of `LENT_MIN` to `LENT_MAX` bytes, whatever is in them. */
export function lend(length: number): Buffer<ArrayBuffer> {
  // Native code makes as much again for its copy.
  noteFresh(length)
  return Buffer.from(kept.pop() ?? new ArrayBuffer(SIZE), START, length)
}

/** Whoever had the piece is done with it. One that was not lent is its owner's. */
export function takeBack(piece: Buffer): void {
  const { buffer, byteOffset } = piece
  if (byteOffset === START && buffer.byteLength === SIZE && kept.length < KEPT_MAX)
    kept.push(buffer as ArrayBuffer)
}
