/** Below this many bytes a loop beats `set`, which needs a view (96 bytes of garbage) for anything but a whole array. */
const LOOP_MAX = 96

/** Copies `length` bytes between two arrays that do not overlap. */
export function copyBytes(
  source: Uint8Array,
  sourceOffset: number,
  target: Uint8Array,
  targetOffset: number,
  length: number,
): void {
  if (length <= LOOP_MAX) {
    for (let i = 0; i < length; i++) target[targetOffset + i] = source[sourceOffset + i] as number
    return
  }
  if (sourceOffset === 0 && length === source.length) {
    target.set(source, targetOffset)
    return
  }
  target.set(
    new Uint8Array(source.buffer as ArrayBuffer, source.byteOffset + sourceOffset, length),
    targetOffset,
  )
}
