/** Up to this many bytes a loop is faster than `set` of a whole array. */
const WHOLE_LOOP_MAX = 8
/** The same for a part of an array, for which `set` needs a view: 96 bytes of garbage. */
const LOOP_MAX = 96
/** As `LOOP_MAX`, for words in a loop that is not unrolled; a view is ten times as fast for 4 KiB. */
const LOOP_WORDS_MAX = 64

/** Copies `length` bytes between two arrays that do not overlap. */
export function copyBytes(
  source: Uint8Array,
  sourceOffset: number,
  target: Uint8Array,
  targetOffset: number,
  length: number,
): void {
  if (sourceOffset === 0 && length === source.length && length > WHOLE_LOOP_MAX) {
    target.set(source, targetOffset)
    return
  }
  if (length <= LOOP_MAX) {
    copyInLoop(source, sourceOffset, target, targetOffset, length)
    return
  }
  target.set(
    new Uint8Array(source.buffer as ArrayBuffer, source.byteOffset + sourceOffset, length),
    targetOffset,
  )
}

/** Copies `count` words between two arrays that do not overlap. */
export function copyWords(
  source: Int32Array,
  sourceWord: number,
  target: Int32Array,
  targetWord: number,
  count: number,
): void {
  if (count > LOOP_WORDS_MAX) {
    const part = new Int32Array(source.buffer as ArrayBuffer, source.byteOffset + 4 * sourceWord, count)
    return target.set(part, targetWord)
  }
  for (let i = 0; i < count; i++) target[targetWord + i] = source[sourceWord + i] as number
}

/**
 * Whether the first `length` bytes of `bytes` exist: the program may have transferred or shrunk the ArrayBuffer. The
 * length of the array alone is not reliable. In Node 20 and 22, after V8 has seen a resizable buffer, compiled code
 * reads an unchanged length from an array whose buffer was transferred.
 */
export function hasBytes(bytes: Uint8Array, length: number): boolean {
  return bytes.length >= length && (length === 0 || bytes.buffer.byteLength > 0)
}

/** Unrolled by eight, which halves the time. */
function copyInLoop(source: Uint8Array, from: number, target: Uint8Array, to: number, length: number): void {
  let i = 0
  for (; i + 8 <= length; i += 8) {
    const a = from + i
    const b = to + i
    target[b] = source[a] as number
    target[b + 1] = source[a + 1] as number
    target[b + 2] = source[a + 2] as number
    target[b + 3] = source[a + 3] as number
    target[b + 4] = source[a + 4] as number
    target[b + 5] = source[a + 5] as number
    target[b + 6] = source[a + 6] as number
    target[b + 7] = source[a + 7] as number
  }
  for (; i < length; i++) target[to + i] = source[from + i] as number
}

/** Whether the range lies within `size` bytes. */
export function isWithin(offset: number, length: number, size: number): boolean {
  return (
    Number.isInteger(offset) &&
    Number.isInteger(length) &&
    offset >= 0 &&
    length >= 0 &&
    offset + length <= size
  )
}
