import { copyWords } from '../../nic/index.ts'
import { WINDOW_FRAMES, WINDOW_MASK, wordCount } from './reliability-layout.ts'

const BLOCK_WORDS = 64
const BLOCK_SIZE = 4 * BLOCK_WORDS
/** Bits for two windows: a window need not begin with a word, and its two ends must not share one. */
const BIT_WORDS = (2 * WINDOW_FRAMES) / 32

/**
 * Frames that came before their turn, at most a window of them, in bounded memory: chains of blocks. A frame without
 * enough free blocks is not kept; the peer sends it again.
 */
export class ReorderBuffer {
  count = 0
  /** One bit for each frame, as SACK sends them. */
  readonly #bits = new Int32Array(BIT_WORDS)
  readonly #lengths = new Int32Array(WINDOW_FRAMES)
  readonly #goesOn = new Uint8Array(WINDOW_FRAMES)
  readonly #firstBlocks = new Int32Array(WINDOW_FRAMES)
  readonly #blocks: Int32Array
  /** The next block of a chain: of a frame, or of the free ones. */
  readonly #nextBlocks: Int32Array
  #freeBlock = 0
  #freeCount: number

  /** Has memory for a window of frames of `size` bytes together, whatever their lengths. */
  constructor(size: number) {
    this.#freeCount = size / BLOCK_SIZE + WINDOW_FRAMES
    this.#blocks = new Int32Array(this.#freeCount * BLOCK_WORDS)
    this.#nextBlocks = new Int32Array(this.#freeCount)
    for (let block = 0; block < this.#freeCount; block++) this.#nextBlocks[block] = block + 1
  }

  has(sequence: number): boolean {
    return ((this.bitsAt(sequence) >>> (sequence & 31)) & 1) !== 0
  }

  /** The bits of the 32 frames around `sequence`; the first frame is a multiple of 32. */
  bitsAt(sequence: number): number {
    return this.#bits[(sequence >> 5) & (BIT_WORDS - 1)] as number
  }

  /** Whether the next part of the same frame follows that one, which is kept. */
  goesOn(sequence: number): boolean {
    return this.#goesOn[sequence & WINDOW_MASK] !== 0
  }

  /** Keeps a copy of the frame at `words[at]`; false if there is no memory for it. */
  store(sequence: number, words: Int32Array, at: number, length: number, goesOn: boolean): boolean {
    if (Math.ceil(length / BLOCK_SIZE) > this.#freeCount) return false
    const slot = sequence & WINDOW_MASK
    this.#lengths[slot] = length
    this.#goesOn[slot] = goesOn ? 1 : 0
    this.#firstBlocks[slot] = this.#freeBlock
    const count = wordCount(length)
    for (let word = 0; word < count; word += BLOCK_WORDS) {
      copyWords(
        words,
        at + word,
        this.#blocks,
        this.#freeBlock * BLOCK_WORDS,
        Math.min(BLOCK_WORDS, count - word),
      )
      this.#freeBlock = this.#nextBlocks[this.#freeBlock] as number
      this.#freeCount--
    }
    this.#flip(sequence)
    this.count++
    return true
  }

  /** Moves a frame that is kept to `words[at]`; returns its length. */
  remove(sequence: number, words: Int32Array, at: number): number {
    const slot = sequence & WINDOW_MASK
    const length = this.#lengths[slot] as number
    let block = this.#firstBlocks[slot] as number
    const count = wordCount(length)
    for (let word = 0; word < count; word += BLOCK_WORDS) {
      copyWords(this.#blocks, block * BLOCK_WORDS, words, at + word, Math.min(BLOCK_WORDS, count - word))
      const next = this.#nextBlocks[block] as number
      this.#nextBlocks[block] = this.#freeBlock
      this.#freeBlock = block
      this.#freeCount++
      block = next
    }
    this.#flip(sequence)
    this.count--
    return length
  }

  #flip(sequence: number): void {
    const index = (sequence >> 5) & (BIT_WORDS - 1)
    this.#bits[index] = (this.#bits[index] as number) ^ (1 << (sequence & 31))
  }
}
