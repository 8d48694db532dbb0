import t from 'tap'
import { SplitAddress } from '../../../nic/verbs/split-address.ts'
import { seededRandom } from '../../support/random.ts'

const OFFSET_MAX = 2 ** 30

t.test('an address and an offset are their sum, as 64 bits', async t => {
  const random = seededRandom(t)
  const words = new Int32Array(4)
  const read = new DataView(words.buffer)
  const bases = [0, 2 ** 30 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 0x7fff_ffff_f000, 2 ** 52]
  const some = Array.from(
    { length: 1000 },
    () => random.within(0, 2 ** 20) * 2 ** 27 + random.within(0, 2 ** 27),
  )
  for (const base of [...bases, ...some]) {
    for (const offset of [0, 1, 4096, random.within(0, OFFSET_MAX), OFFSET_MAX]) {
      new SplitAddress(base).writeTo(words, 1, offset)
      const sum = Number(read.getBigUint64(4, true))
      if (sum !== base + offset) return t.equal(sum, base + offset, `${base} + ${offset}`)
    }
  }
  t.equal(words[0], 0, 'nothing else is written')
})
