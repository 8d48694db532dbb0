/**
 * NH, the universal hash of UMAC (RFC 4418, section 5.2), twice, with keys 16 bytes apart: two contents have the same 16 bytes
 * with probability 2^-64 for an attacker who does not know the key. JavaScript has no products of 64 bits, so NH is a function of
 * WebAssembly, assembled here. Chaskey takes five times as long.
 */

/** Longest content of one call, and the key for it. */
export const NH_SIZE = 1024
export const NH_KEY_SIZE = NH_SIZE + 16
/** Content is hashed in blocks of so many bytes. */
export const NH_BLOCK_SIZE = 32

// Types, instructions and sections of the WebAssembly specification, 5.3, 5.4 and 5.5.
const I32 = 0x7f
const V128 = 0x7b
const LOOP_WITHOUT_RESULT = [0x03, 0x40]
const REPEAT_IF = [0x0d, 0]
const END = 0x0b
const I32_LESS = 0x49
const I32_ADD = 0x6a
const I64_ADD = 0x7c
const FOUR_ADDS = vector(0xae)
const TWO_ADDS = vector(0xce)
const LOW_PRODUCTS = vector(0xde)
const HIGH_PRODUCTS = vector(0xdf)
const get = (local: number): number[] => [0x20, local]
const set = (local: number): number[] => [0x21, local]
const load = (local: number, offset: number): number[] => [...get(local), ...vector(0), 4, offset]
const lane = (local: number, index: number): number[] => [...get(local), ...vector(0x1d), index]

// Parameters, and locals.
const [at, end, key, result] = [0, 1, 2, 3] as const
const [first, second, block0, block1, a, b] = [4, 5, 6, 7, 8, 9] as const

/** Adds the products of a block to `sum`: word i, plus its key, times word i + 4, plus its key. */
const addProducts = (sum: number, keyOffset: number): number[] => [
  ...[...get(block0), ...load(key, keyOffset), ...FOUR_ADDS, ...set(a)],
  ...[...get(block1), ...load(key, keyOffset + 16), ...FOUR_ADDS, ...set(b)],
  ...[...get(sum), ...get(a), ...get(b), ...LOW_PRODUCTS, ...TWO_ADDS],
  ...[...get(a), ...get(b), ...HIGH_PRODUCTS, ...TWO_ADDS, ...set(sum)],
]
const advance = (local: number): number[] => [...get(local), 0x41, NH_BLOCK_SIZE, I32_ADD, ...set(local)]
const store = (sum: number, offset: number): number[] => [
  ...[...get(result), ...lane(sum, 0), ...lane(sum, 1), I64_ADD, 0x37, 3, offset],
]
const BODY = [
  ...[1, 6, V128],
  ...LOOP_WITHOUT_RESULT,
  ...[...load(at, 0), ...set(block0), ...load(at, 16), ...set(block1)],
  ...[...addProducts(first, 0), ...addProducts(second, 16)],
  ...[...advance(at), ...advance(key), ...get(at), ...get(end), I32_LESS, ...REPEAT_IF, END],
  ...[...store(first, 0), ...store(second, 8), END],
]
const MODULE = Uint8Array.from([
  ...Buffer.from('\0asm\x01\0\0\0'),
  ...section(1, [1, 0x60, 4, I32, I32, I32, I32, 0]), // types: one function of four parameters
  ...section(3, [1, 0]), // functions
  ...section(5, [1, 0, 1]), // memory: 64 KiB
  ...section(7, [2, ...exported('memory', 2), ...exported('hash', 0)]),
  ...section(10, [1, ...number(BODY.length), ...BODY]),
])

export interface Nh {
  /** Memory of `hash`. */
  readonly words: Int32Array
  /**
   * Puts the 16 bytes at `result`. Places are bytes in the memory; `at` to `end` is 1 to 32 blocks.
   */
  readonly hash: (at: number, end: number, key: number, result: number) => void
}

/** As far as it is used here: TypeScript declares it with the types of browsers only. */
interface Assembly {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (
    module: object,
  ) => { readonly exports: { readonly memory: { readonly buffer: ArrayBuffer }; readonly hash: Nh['hash'] } }
}

/** Throws where programs may use no WebAssembly, or its SIMD is missing. */
export function openNh(): Nh {
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: Assembly }
  const { memory, hash } = new WebAssembly.Instance(new WebAssembly.Module(MODULE)).exports
  return { words: new Int32Array(memory.buffer), hash }
}

/** LEB128. */
function number(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...number(value >>> 7)]
}

function vector(operation: number): number[] {
  return [0xfd, ...number(operation)]
}

function section(id: number, bytes: readonly number[]): number[] {
  return [id, ...number(bytes.length), ...bytes]
}

function exported(name: string, kind: number): number[] {
  return [name.length, ...Buffer.from(name), kind, 0]
}
