/** Below this many bytes a loop beats `set` … */
const WHOLE_LOOP_MAX = 8
/** … which needs a view (96 bytes of garbage) for anything but a whole array. */
const LOOP_MAX = 96

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
    for (let i = 0; i < length; i++) target[targetOffset + i] = source[sourceOffset + i] as number
    return
  }
  target.set(
    new Uint8Array(source.buffer as ArrayBuffer, source.byteOffset + sourceOffset, length),
    targetOffset,
  )
}
