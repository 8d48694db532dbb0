const MIB = 1024 * 1024

/** A mebibyte that no other number has. */
export function patternedMiB(number: number): Buffer {
  const bytes = Buffer.alloc(MIB)
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, MIB / 4)
  for (let i = 0; i < words.length; i++) words[i] = (number * MIB + i) * 2654435761
  return bytes
}
