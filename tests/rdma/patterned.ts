import { createHash, type Hash } from 'node:crypto'

const MIB = 1024 * 1024
/** Every so many words one says the number. */
const STEP = 64

const template = new Uint32Array(MIB / 4)
for (let i = 0; i < template.length; i++) template[i] = i * 2654435761

/** A mebibyte that no other number has. Cheap to make: an emulator is slow at arithmetic. */
export function patternedMiB(number: number): Buffer {
  const words = template.slice()
  for (let i = 0; i < words.length; i += STEP) words[i] = number
  return Buffer.from(words.buffer)
}

/** The cheapest checksum in an emulator that sees bytes in the wrong order. */
export function newSum(): Hash {
  return createHash('md5')
}
