/** Bytes that say where in a stream they belong. */

/** A prime: pieces and windows have nothing in common with it. */
const PERIOD = 251
/** No view is longer. */
const VIEW_MAX = 2 ** 20

const CYCLE = Buffer.from(Array.from({ length: VIEW_MAX + PERIOD }, (_, i) => i % PERIOD))

/** A view of bytes that no test changes, `VIEW_MAX` at most. */
export function patternAt(position: number, length: number): Buffer {
  return CYCLE.subarray(position % PERIOD, (position % PERIOD) + length)
}

/** Memory of its own, of any length. */
export function patterned(position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(length)
  for (let at = 0; at < length; at += VIEW_MAX) patternAt(position + at, VIEW_MAX).copy(bytes, at)
  return bytes
}

export function isPatterned(bytes: Uint8Array, position: number): boolean {
  return patterned(position, bytes.length).equals(bytes)
}
