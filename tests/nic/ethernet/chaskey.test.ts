/** Against the vectors of the authors' reference implementation of Chaskey-12 (message 00 01 02 …; whole blocks). */
import t from 'tap'
import { authenticate, scheduleOf, tag } from '../../../nic/ethernet/chaskey.ts'

const KEY = Buffer.from('33343d839f389f004fe6982339cf7a41', 'hex')
const VECTORS: readonly [length: number, first: number, second: number][] = [
  [16, 0x5dd0e2a9, 0xfb5eac8c],
  [32, 0x77962784, 0x07c647fa],
]

t.test('the tag is that of the reference', async t => {
  const message = new Int32Array(Uint8Array.from({ length: 32 }, (_, i) => i).buffer)
  for (const [length, first, second] of VECTORS) {
    authenticate(scheduleOf(KEY), message, 0, length / 4)
    t.strictSame([...tag], [first | 0, second | 0], `${length} bytes`)
  }
})

t.test('each changed bit, of the message or the key, changes the tag', async t => {
  const message = new Int32Array(8)
  const tags = new Set<string>()
  for (let bit = 0; bit < 256; bit++) {
    message[bit >> 5] = 1 << (bit & 31)
    authenticate(scheduleOf(KEY), message, 0, 8)
    message[bit >> 5] = 0
    tags.add(tag.join())
  }
  for (let bit = 0; bit < 128; bit++) {
    const key = Buffer.from(KEY)
    key[bit >> 3] = (key[bit >> 3] as number) ^ (1 << (bit & 7))
    authenticate(scheduleOf(key), message, 0, 8)
    tags.add(tag.join())
  }
  t.equal(tags.size, 256 + 128)
})
