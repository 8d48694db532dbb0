import { copyBytes } from '../../nic/index.ts'
import { lengthOf } from '../host/written-chunks.ts'

const NOTHING: readonly Uint8Array[] = []
/** Chunks that are sent stay in the array until they are so many and half of it. */
const CUT_OFF_MIN = 64

/**
 * What a program has written and is not sent yet, in order. During `write` these are the program's own chunks; what is left
 * afterwards is copied (`keep`), because the program may use its memory again. Only chunks that it has lent stay where they are.
 */
export class PendingChunks {
  /** Bytes that are not sent yet. */
  length = 0
  /** Some of them lie in memory that the program has lent. */
  isLent = false
  private chunks = NOTHING
  private index = 0
  private offset = 0

  /** The chunks of a write; nothing may be pending. */
  set(chunks: readonly Uint8Array[]): void {
    this.chunks = chunks
    this.index = 0
    this.offset = 0
    this.length = lengthOf(chunks)
  }

  /** Another write, behind what is pending and kept: copies, but for chunks of at least `lentMin` bytes. */
  add(chunks: readonly Uint8Array[], lentMin: number): void {
    const own = this.chunks as Uint8Array[]
    for (const chunk of chunks) if (chunk.length > 0) own.push(this.keepOne(chunk, 0, lentMin))
    this.length += lengthOf(chunks)
  }

  /** What is left of `set` moves to memory of its own, but for chunks of at least `lentMin` bytes. */
  keep(lentMin: number): void {
    const kept: Uint8Array[] = []
    for (let i = this.index; i < this.chunks.length; i++) {
      const from = i === this.index ? this.offset : 0
      const chunk = this.chunks[i] as Uint8Array
      if (chunk.length > from) kept.push(this.keepOne(chunk, from, lentMin))
    }
    this.chunks = kept
    this.index = 0
    this.offset = 0
  }

  /** Drops all but the next `length` bytes; those that were lent are copied, as the program has its memory again. */
  cut(length: number): void {
    this.keep(Number.POSITIVE_INFINITY)
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

  /** False if the program has transferred or resized what it had lent. */
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

  /** What is left of the chunk that is next. */
  get nextLength(): number {
    return this.length === 0 ? 0 : (this.chunks[this.index] as Uint8Array).length - this.offset
  }

  /** That chunk, up to `lengthMax` bytes of it. */
  next(lengthMax: number): Uint8Array {
    return (this.chunks[this.index] as Uint8Array).subarray(this.offset, this.offset + lengthMax)
  }

  /** Steps over `length` bytes of it. */
  skip(length: number): void {
    this.length -= length
    this.step(length)
  }

  /** Copies the next `length` bytes to where a message is being made, and steps over them. */
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

  private keepOne(chunk: Uint8Array, from: number, lentMin: number): Uint8Array {
    if (chunk.length - from < lentMin) return Buffer.from(chunk.subarray(from))
    this.isLent = true
    return chunk.subarray(from)
  }

  private step(part: number): void {
    this.offset += part
    if (this.offset < (this.chunks[this.index] as Uint8Array).length) return
    this.index++
    this.offset = 0
    if (this.index < CUT_OFF_MIN || 2 * this.index < this.chunks.length) return
    this.chunks = this.chunks.slice(this.index)
    this.index = 0
  }
}
