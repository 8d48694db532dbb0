import { copyBytes } from '../../nic/index.ts'
import { lengthOf } from '../host/written-chunks.ts'

const NOTHING: readonly Uint8Array[] = []

/** The chunks of one write, as far as they are not out yet. They stay the writer's until all of them are. */
export class PendingChunks {
  /** Bytes that are not out yet. */
  length = 0
  /** A write is not out yet, be it an empty one. */
  isWaiting = false
  #chunks = NOTHING
  #index = 0
  #offset = 0

  set(chunks: readonly Uint8Array[]): void {
    this.#chunks = chunks
    this.#index = 0
    this.#offset = 0
    this.length = lengthOf(chunks)
    this.isWaiting = true
  }

  clear(): void {
    this.#chunks = NOTHING
    this.length = 0
    this.isWaiting = false
  }

  /** What is left moves to memory of our own: the writer's is his again. */
  own(): void {
    const bytes = Buffer.allocUnsafeSlow(this.length)
    this.copyTo(bytes, 0, bytes.length)
    this.set([bytes])
  }

  /** What is left of the chunk that is next. */
  get nextLength(): number {
    return this.length === 0 ? 0 : (this.#chunks[this.#index] as Uint8Array).length - this.#offset
  }

  /** That chunk, up to `lengthMax` bytes of it. */
  next(lengthMax: number): Uint8Array {
    return (this.#chunks[this.#index] as Uint8Array).subarray(this.#offset, this.#offset + lengthMax)
  }

  /** Steps over `length` bytes of it. */
  skip(length: number): void {
    this.length -= length
    this.#step(length)
  }

  /** Copies the next `length` bytes to where a message is being made, and steps over them. */
  copyTo(target: Uint8Array, at: number, length: number): void {
    this.length -= length
    for (let copied = 0; copied < length; ) {
      const chunk = this.#chunks[this.#index] as Uint8Array
      const part = Math.min(chunk.length - this.#offset, length - copied)
      copyBytes(chunk, this.#offset, target, at + copied, part)
      copied += part
      this.#step(part)
    }
  }

  #step(part: number): void {
    this.#offset += part
    if (this.#offset < (this.#chunks[this.#index] as Uint8Array).length) return
    this.#index++
    this.#offset = 0
  }
}
