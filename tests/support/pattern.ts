/** Bytes that say where in a stream they belong: no period but a prime, so that no shift goes unnoticed. */
const PERIOD = 65_521

const period = Buffer.from(Array.from({ length: PERIOD }, (_, i) => (i * 7919 + (i >> 8)) & 0xff))
/** Any stretch of up to a period, from any position. */
const doubled = Buffer.concat([period, period])

export function patterned(position: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafeSlow(length)
  for (let at = 0; at < length; at += PERIOD) {
    const from = (position + at) % PERIOD
    doubled.copy(bytes, at, from, from + Math.min(PERIOD, length - at))
  }
  return bytes
}

export function isPatterned(bytes: Uint8Array, position: number): boolean {
  return patterned(position, bytes.length).equals(bytes)
}
