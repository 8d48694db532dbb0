import { copyBytes } from '../../nic/index.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import { lengthOf } from '../host/written-chunks.ts'

const NOTHING: readonly Uint8Array[] = []
/** Sent chunks stay in the array until there are so many, and until they are half of it. */
const CUT_OFF_MIN = 64
/**
 * `PendingChunks` makes long copies in pieces of so many bytes, and copies into the memory of pieces that it has sent: to touch memory
 * that is new to the process takes longer than the copy.
 */
const PIECE_SIZE = 64 * 1024
/** Shorter chunks are copied whole: so the pieces of a chunk occupy at most twice its length. */
const PIECED_MIN = PIECE_SIZE / 2
/** Most pieces that are kept: 4 MiB, as much as one socket has under way. */
const SPARES_MAX = 64

const spares: Uint8Array[] = []
/** The memory of all pieces. Their length does not tell them from a program's chunks. */
const pieces = new WeakSet<object>()

/**
 * Written bytes that are not sent yet, in order. During `write` they are the program's chunks. Afterwards `keep` copies
 * the rest, because the program may reuse its memory; only lent chunks stay in place.
 */
export class PendingChunks {
  /** Bytes that are not sent yet. */
  length = 0
  /** Some bytes are in memory that the program has lent. */
  isLent = false
  private chunks = NOTHING
  private index = 0
  private offset = 0

  /** Sets the chunks of a write; nothing may be pending. */
  set(chunks: readonly Uint8Array[]): void {
    this.chunks = chunks
    this.index = 0
    this.offset = 0
    this.length = lengthOf(chunks)
  }

  /**
   * Appends another write: copies, except for chunks of at least `lentMin` bytes, which are lent. `isWhole`: each copy is one chunk,
   * which may be offered to the peer.
   */
  add(chunks: readonly Uint8Array[], lentMin: number, isWhole: boolean): void {
    const own = this.chunks as Uint8Array[]
    for (const chunk of chunks) if (chunk.length > 0) this.keepOne(own, chunk, lentMin, isWhole)
    this.length += lengthOf(chunks)
  }

  /** Copies the rest of `set`, as `add` does. */
  keep(lentMin: number, isWhole: boolean): void {
    const kept: Uint8Array[] = []
    for (let i = this.index; i < this.chunks.length; i++) {
      const from = i === this.index ? this.offset : 0
      const chunk = this.chunks[i] as Uint8Array
      if (chunk.length > from) this.keepOne(kept, chunk.subarray(from), lentMin, isWhole)
    }
    this.chunks = kept
    this.index = 0
    this.offset = 0
  }

  /** Drops all but the next `length` bytes, and copies lent ones: the program owns its memory again. */
  cut(length: number): void {
    this.keep(Number.POSITIVE_INFINITY, true)
    this.isLent = false
    let left = length
    const kept: Uint8Array[] = []
    for (const chunk of this.chunks) {
      if (left === 0) break
      kept.push(left < chunk.length ? chunk.subarray(0, left) : chunk)
      left -= Math.min(left, chunk.length)
    }
    this.set(kept)
  }

  /** False if the program has transferred or resized lent memory. */
  isWhole(): boolean {
    let length = -this.offset
    for (let i = this.index; i < this.chunks.length; i++) length += (this.chunks[i] as Uint8Array).length
    return length === this.length
  }

  clear(): void {
    this.chunks = NOTHING
    this.isLent = false
    this.length = 0
  }

  /** Length of the rest of the next chunk. */
  get nextLength(): number {
    return this.length === 0 ? 0 : (this.chunks[this.index] as Uint8Array).length - this.offset
  }

  /** Length of the chunk after the next one, or 0. */
  get secondLength(): number {
    return this.chunks[this.index + 1]?.length ?? 0
  }

  /** The rest of the next chunk, at most `lengthMax` bytes. */
  next(lengthMax: number): Uint8Array {
    return (this.chunks[this.index] as Uint8Array).subarray(this.offset, this.offset + lengthMax)
  }

  /** Removes `length` bytes of the next chunk. */
  skip(length: number): void {
    this.length -= length
    this.step(length)
  }

  /** Moves a copy of the next `length` bytes into a message. */
  copyTo(target: Uint8Array, at: number, length: number): void {
    this.length -= length
    for (let copied = 0; copied < length; ) {
      const chunk = this.chunks[this.index] as Uint8Array
      const part = Math.min(chunk.length - this.offset, length - copied)
      copyBytes(chunk, this.offset, target, at + copied, part)
      copied += part
      this.step(part)
    }
  }

  private keepOne(kept: Uint8Array[], chunk: Uint8Array, lentMin: number, isWhole: boolean): void {
    const { length } = chunk
    if (length >= lentMin) {
      this.isLent = true
      kept.push(chunk)
    } else if (isWhole || length < PIECED_MIN) kept.push(Buffer.from(chunk))
    else for (let at = 0; at < length; at += PIECE_SIZE) kept.push(pieceOf(chunk, at))
  }

  private step(part: number): void {
    this.offset += part
    const chunk = this.chunks[this.index] as Uint8Array
    if (this.offset < chunk.length) return
    if (spares.length < SPARES_MAX && pieces.has(chunk.buffer)) spares.push(new Uint8Array(chunk.buffer))
    this.index++
    this.offset = 0
    if (this.index < CUT_OFF_MIN || 2 * this.index < this.chunks.length) return
    this.chunks = this.chunks.slice(this.index)
    this.index = 0
  }
}

/** A copy of the bytes from `at` on, at most one piece. */
function pieceOf(chunk: Uint8Array, at: number): Uint8Array {
  const length = Math.min(PIECE_SIZE, chunk.length - at)
  const memory = spares.pop() ?? newPiece()
  copyBytes(chunk, at, memory, 0, length)
  return memory.subarray(0, length)
}

function newPiece(): Uint8Array {
  const memory = allocateFresh(PIECE_SIZE)
  pieces.add(memory.buffer)
  return memory
}
