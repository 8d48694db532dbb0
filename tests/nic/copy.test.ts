import t from 'tap'
import { copyBytes } from '../../nic/index.ts'
import { patterned } from '../support/frames.ts'

const LENGTHS = [0, 1, 7, 8, 63, 64, 95, 96, 97, 128, 1000]

t.test('copyBytes moves exactly the bytes that it is told to, whatever their number and place', async t => {
  for (const length of LENGTHS) {
    for (const [sourceOffset, rest] of [
      [0, 0],
      [0, 5],
      [3, 0],
      [3, 5],
    ] as const) {
      const source = patterned(sourceOffset + length + rest, 1)
      const target = Buffer.alloc(length + 20, 0xee)
      copyBytes(source, sourceOffset, target, 11, length)
      const expected = Buffer.alloc(length + 20, 0xee)
      source.copy(expected, 11, sourceOffset, sourceOffset + length)
      t.ok(expected.equals(target), `${length} bytes from ${sourceOffset}, ${rest} after them`)
    }
  }
})

t.test('copyBytes reads the part of a buffer that an array shows, not the buffer', async t => {
  for (const length of LENGTHS) {
    const whole = patterned(length + 64, 2)
    const part = new Uint8Array(whole.buffer, whole.byteOffset + 32, length + 8)
    const target = Buffer.alloc(length)
    copyBytes(part, 4, target, 0, length)
    t.ok(whole.subarray(36, 36 + length).equals(target), `${length} bytes`)
  }
})
