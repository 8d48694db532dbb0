import { addressOf, copyBytes, hasBytes, readOwnMemory } from '../../nic/index.ts'
import { lengthOf } from '../host/written-chunks.ts'

const NOTHING: readonly Uint8Array[] = []

/**
 * The chunks of one write, as far as they are not out yet. They stay the writer's until all of them are.
 *
 * A chunk that has to wait may lose its memory: its buffer is transferred to another thread, is resized, or belongs to
 * WebAssembly memory that grows. libuv has only the address, and sends what is there; so do we.
 */
export class PendingChunks {
  /** Bytes that are not out yet. */
  length = 0
  /** A write is not out yet, be it an empty one. */
  isWaiting = false
  #chunks = NOTHING
  #index = 0
  #offset = 0
  /** Of chunks that have to wait: where they lie and how long they were. */
  #addresses: number[] | undefined
  #lengths: number[] | undefined

  set(chunks: readonly Uint8Array[]): void {
    this.#chunks = chunks
    this.#addresses = undefined
    this.#lengths = undefined
    this.#index = 0
    this.#offset = 0
    this.length = lengthOf(chunks)
    this.isWaiting = true
  }

  /** Another write, behind one that waits. */
  add(chunks: readonly Uint8Array[]): void {
    const from = this.#chunks.length
    this.#chunks = [...this.#chunks, ...chunks]
    this.length += lengthOf(chunks)
    for (let i = from; i < this.#chunks.length; i++) {
      const chunk = this.#chunks[i] as Uint8Array
      this.#addresses?.push(addressOf(chunk))
      this.#lengths?.push(chunk.length)
    }
  }

  /** What is left has to wait, and anything may happen to it. */
  note(): void {
    this.#addresses = this.#chunks.map(addressOf)
    this.#lengths = this.#chunks.map(({ length }) => length)
  }

  /** Sees to it that the next `length` bytes, of one chunk at least, can be taken; false if their memory is gone. */
  secure(length: number): boolean {
    const lengths = this.#lengths
    if (lengths === undefined) return true
    let left = length + this.#offset
    for (let i = this.#index; left > 0; i++) {
      const noted = lengths[i] as number
      if (!hasBytes(this.#chunks[i] as Uint8Array, noted) && !this.#recover(i)) return false
      left -= noted
    }
    return true
  }

  /** The chunk's bytes, in memory of our own. */
  #recover(index: number): boolean {
    const bytes = Buffer.allocUnsafeSlow(this.#lengthAt(index))
    const begin = index === this.#index ? this.#offset : 0
    const address = this.#addresses?.[index] ?? 0
    if (address === 0 || !readOwnMemory(address + begin, bytes.subarray(begin))) return false
    this.#chunks = this.#chunks.with(index, bytes)
    return true
  }

  clear(): void {
    this.#chunks = NOTHING
    this.#addresses = undefined
    this.#lengths = undefined
    this.length = 0
    this.isWaiting = false
  }

  /** The next `length` bytes, which are all from now on, move to memory of our own. False if they are gone. */
  own(length: number): boolean {
    if (!this.secure(length)) return false
    const bytes = Buffer.allocUnsafeSlow(length)
    this.copyTo(bytes, 0, bytes.length)
    this.set([bytes])
    return true
  }

  /** What is left of the chunk that is next. */
  get nextLength(): number {
    return this.length === 0 ? 0 : this.#lengthAt(this.#index) - this.#offset
  }

  /** That chunk, up to `lengthMax` bytes of it, which must be secure. */
  next(lengthMax: number): Uint8Array {
    const end = Math.min(this.#lengthAt(this.#index), this.#offset + lengthMax)
    return (this.#chunks[this.#index] as Uint8Array).subarray(this.#offset, end)
  }

  /** Steps over `length` bytes of it. */
  skip(length: number): void {
    this.length -= length
    this.#step(length)
  }

  /** Copies the next `length` bytes, which must be secure, to where a message is being made, and steps over them. */
  copyTo(target: Uint8Array, at: number, length: number): void {
    this.length -= length
    for (let copied = 0; copied < length; ) {
      const chunk = this.#chunks[this.#index] as Uint8Array
      const part = Math.min(this.#lengthAt(this.#index) - this.#offset, length - copied)
      copyBytes(chunk, this.#offset, target, at + copied, part)
      copied += part
      this.#step(part)
    }
  }

  #step(part: number): void {
    this.#offset += part
    if (this.#offset < this.#lengthAt(this.#index)) return
    this.#index++
    this.#offset = 0
  }

  #lengthAt(index: number): number {
    return this.#lengths === undefined
      ? (this.#chunks[index] as Uint8Array).length
      : (this.#lengths[index] as number)
  }
}
