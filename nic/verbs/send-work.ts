import type { Libc } from '../posix/libc.ts'
import {
  SEND_FLAGS_WORD,
  SEND_ID_HIGH_WORD,
  SEND_ID_LOW_WORD,
  SEND_IMM_WORD,
  SEND_INLINE,
  SEND_NEXT_WORD,
  SEND_OPCODE_WORD,
  SEND_REMOTE_HIGH_WORD,
  SEND_REMOTE_LOW_WORD,
  SEND_RKEY_WORD,
  SEND_SGE,
  SEND_SGE_COUNT_WORD,
  SEND_SIGNALED,
  SEND_WR_SIZE,
  SGE_HIGH_WORD,
  SGE_LENGTH_WORD,
  SGE_LKEY_WORD,
  SGE_LOW_WORD,
  SGE_SIZE,
} from './library-layout.ts'
import type { SplitAddress } from './split-address.ts'
import type { Pointer } from './verbs-library.ts'

const TWO_TO_32 = 2 ** 32
const SGE_WORD = SEND_WR_SIZE / 4
/** Where the library reports which request it refused; there is only one. */
const BAD_AT = SEND_WR_SIZE + SGE_SIZE

/** One send request and its one piece of memory, built once and filled for each use (library-layout.ts). */
export class SendWork {
  /** Addresses of the request, and of the place for a refused one. */
  readonly pointer: Pointer
  readonly badPointer: Pointer
  readonly #words: Int32Array
  readonly #inlineMax: number

  constructor(libc: Libc, inlineMax: number) {
    // Not in V8's heap, where it could move: only small typed arrays without an ArrayBuffer of their own are.
    const memory = new ArrayBuffer(BAD_AT + 8)
    const bytes = Buffer.from(memory)
    this.#words = new Int32Array(memory)
    this.#inlineMax = inlineMax
    this.pointer = libc.address(bytes)
    this.badPointer = this.pointer + BigInt(BAD_AT)
    bytes.writeBigUInt64LE(this.pointer + BigInt(SEND_WR_SIZE), SEND_SGE)
  }

  /** The identity in its completion, if `isSignaled` or if it fails. */
  setIdentity(low: number, high: number): void {
    this.#words[SEND_ID_LOW_WORD] = low
    this.#words[SEND_ID_HIGH_WORD] = high
  }

  setTransfer(opcode: number, length: number, lkey: number, rkey: number): void {
    const words = this.#words
    words[SEND_OPCODE_WORD] = opcode
    words[SEND_SGE_COUNT_WORD] = length === 0 ? 0 : 1
    words[SGE_WORD + SGE_LENGTH_WORD] = length
    words[SGE_WORD + SGE_LKEY_WORD] = lkey
    words[SEND_RKEY_WORD] = rkey
  }

  /** The same offset on both sides. */
  setPlaces(local: SplitAddress, remote: SplitAddress, offset: number): void {
    local.writeTo(this.#words, SGE_WORD + SGE_LOW_WORD, offset)
    remote.writeTo(this.#words, SEND_REMOTE_LOW_WORD, offset)
  }

  /** Addresses are exact as numbers up to 2^53. */
  setAddresses(local: number, remote: number): void {
    const words = this.#words
    words[SGE_WORD + SGE_LOW_WORD] = local | 0
    words[SGE_WORD + SGE_HIGH_WORD] = Math.floor(local / TWO_TO_32)
    words[SEND_REMOTE_LOW_WORD] = remote | 0
    words[SEND_REMOTE_HIGH_WORD] = Math.floor(remote / TWO_TO_32)
  }

  /** Address of the posted request. */
  setNext(at: SplitAddress | undefined): void {
    if (at !== undefined) return at.writeTo(this.#words, SEND_NEXT_WORD, 0)
    this.#words[SEND_NEXT_WORD] = 0
    this.#words[SEND_NEXT_WORD + 1] = 0
  }

  /** In network order. */
  setImmediateData(word: number): void {
    this.#words[SEND_IMM_WORD] = word
  }

  /** `mayInline`: the bytes may be copied into the request, if they are few enough. */
  setFlags(isSignaled: boolean, mayInline: boolean): void {
    const length = this.#words[SGE_WORD + SGE_LENGTH_WORD] as number
    const isInline = mayInline && length > 0 && length <= this.#inlineMax
    this.#words[SEND_FLAGS_WORD] = (isSignaled ? SEND_SIGNALED : 0) | (isInline ? SEND_INLINE : 0)
  }
}
