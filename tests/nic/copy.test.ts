import t from 'tap'
import { copyBytes, copyWords, hasBytes } from '../../nic/index.ts'
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

t.test(
  'copyWords moves exactly the words that it is told to, of the part of a buffer that an array shows',
  async t => {
    for (const count of [0, 1, 63, 64, 65, 352, 1000]) {
      const whole = patterned(4 * (count + 16), 3)
      const source = new Int32Array(whole.buffer, whole.byteOffset + 8, count + 10)
      const target = new Int32Array(count + 20).fill(-1)
      copyWords(source, 3, target, 7, count)
      const expected = new Int32Array(count + 20).fill(-1)
      for (let i = 0; i < count; i++) expected[7 + i] = whole.readInt32LE(4 * (i + 5))
      t.same(target, expected, `${count} words`)
    }
  },
)

t.test('hasBytes sees that a buffer is gone or shorter, also once V8 has compiled it', async t => {
  type Resizable = ArrayBuffer & { resize(length: number): void }
  const make = ArrayBuffer as unknown as new (length: number, options: { maxByteLength: number }) => Resizable
  const resizable = new make(100, { maxByteLength: 200 })
  // Many times, with all kinds that there are: it is what was seen that is compiled.
  const seen = [new Uint8Array(100), new Uint8Array(resizable), Buffer.alloc(100)]
  let count = 0
  for (let i = 0; i < 1_000_000; i++) if (hasBytes(seen[i % 3] as Uint8Array, 100)) count++
  t.equal(count, 1_000_000)
  await new Promise(resolve => setTimeout(resolve, 100))
  const buffer = new ArrayBuffer(100)
  const [all, part] = [new Uint8Array(buffer), new Uint8Array(buffer, 10, 20)]
  t.ok(hasBytes(all, 100) && hasBytes(part, 20))
  structuredClone(buffer, { transfer: [buffer] })
  t.notOk(hasBytes(all, 100))
  t.notOk(hasBytes(part, 20))
  t.ok(hasBytes(all, 0))
  resizable.resize(50)
  t.notOk(hasBytes(seen[1] as Uint8Array, 100))
})
