/** Against the definition of NH, with whole numbers of any size (RFC 4418, section 5.2.2). */
import t from 'tap'
import { NH_BLOCK_SIZE, NH_KEY_SIZE, NH_SIZE, openNh } from '../../../nic/ethernet/nh.ts'
import { seededRandom } from '../../support/random.ts'

/** Words from which the next of the two hashes takes its key. */
const SHIFT = 4
const WORD = 2 ** 32

function nhOf(content: Int32Array, key: Int32Array, from: number): bigint {
  const sumOf = (i: number): bigint => BigInt(((content[i] as number) + (key[from + i] as number)) >>> 0)
  let sum = 0n
  for (let block = 0; block < content.length; block += 8)
    for (let i = block; i < block + 4; i++) sum += sumOf(i) * sumOf(i + 4)
  return BigInt.asUintN(64, sum)
}

t.test('it is the sum of products, for every length', async t => {
  const random = seededRandom(t)
  const { words, hash } = openNh()
  const key = new Int32Array(NH_KEY_SIZE / 4).map(() => random.within(0, WORD - 1))
  words.set(key)
  const [at, result] = [2048, 8192]
  for (let size = NH_BLOCK_SIZE; size <= NH_SIZE; size += NH_BLOCK_SIZE) {
    const content = new Int32Array(size / 4).map(() => random.within(0, WORD - 1))
    if (size === NH_SIZE) content.fill(-1)
    words.set(content, at / 4)
    hash(at, at + size, 0, result)
    const both = new BigUint64Array(words.buffer, result, 2)
    t.strictSame([...both], [nhOf(content, key, 0), nhOf(content, key, SHIFT)], `${size} bytes`)
  }
})
