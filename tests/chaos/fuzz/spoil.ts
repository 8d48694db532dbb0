import type { Random } from '../../support/random.ts'

/** Numbers that hurt a reader which takes them for a length, an offset or a count. */
const ABSURD = [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xfff8] as const
const LONGER_MAX = 600

/** Something good, with some of its bytes changed, cut off, or followed by others. One in ten stays what it was. */
export function spoil(random: Random, good: Buffer): Buffer {
  const spoilt = Buffer.from(good)
  if (random.chance(0.1)) return spoilt
  for (let i = random.within(0, 4); i > 0 && spoilt.length > 0; i--) {
    const at = random.within(0, spoilt.length - 1)
    if (random.chance(0.7) || at + 4 > spoilt.length) spoilt[at] = random.word()
    else spoilt.writeUInt32LE(random.pick(ABSURD), at)
  }
  if (random.chance(0.8)) return spoilt
  if (random.chance(0.5)) return spoilt.subarray(0, random.within(0, spoilt.length))
  return Buffer.concat([spoilt, random.bytes(random.within(1, LONGER_MAX))])
}

/** Pieces of text that mean something to a parser, and some that should not. */
const PIECES = [
  '',
  ' ',
  '\n',
  ':',
  '/',
  '//',
  '..',
  '*',
  '**/',
  '?',
  '"',
  "'",
  '{',
  '}',
  '[',
  ']',
  ',',
  '-',
  '- ',
  '&a ',
  '*a',
  '!!binary ',
  '%',
  '@',
  '\\',
  '\u0000',
  '\u001b[2J',
  '\u202e',
  '\ufeff',
  '\ud800',
  '☃',
  '1',
  '0',
  '-1',
  '65536',
  '1e999',
  'null',
  'true',
  '__proto__',
  'constructor',
  '<<: ',
  'inet:tcp:',
  '::1',
  '0x',
  'x'.repeat(300),
] as const

/** The same for text: pieces are put in, taken out, doubled. */
export function spoilText(random: Random, good: string): string {
  let text = good
  if (random.chance(0.1)) return text
  for (let i = random.within(1, 4); i > 0; i--) {
    const from = random.within(0, text.length)
    const to = random.chance(0.5) ? from : Math.min(text.length, from + random.within(0, 8))
    const piece = random.chance(0.2) ? text.slice(from, from + random.within(0, 40)) : random.pick(PIECES)
    text = text.slice(0, from) + piece + text.slice(to)
  }
  return text
}
