import t from 'tap'
import { tagOf, ZERO_TAG } from '../../am/tag.ts'
import { seededRandom } from '../support/random.ts'

/** The tag that two words on the wire stand for. */
function joined(low: number, high: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)
}

t.test('a tag of 64 bits is two signed words, the low one first', async t => {
  const tags: [value: bigint, low: number, high: number][] = [
    [1n, 1, 0],
    [0x8000_0000n, -0x8000_0000, 0],
    [0xffff_ffffn, -1, 0],
    [1n << 32n, 0, 1],
    [(1n << 63n) - 1n, -1, 0x7fff_ffff],
    [1n << 63n, 0, -0x8000_0000],
    [(1n << 64n) - 1n, -1, -1],
    [0x0123_4567_89ab_cdefn, 0x89ab_cdef | 0, 0x0123_4567],
  ]
  for (const [value, low, high] of tags) t.strictSame(tagOf(value), { low, high, isZero: false }, `${value}`)
})

t.test('tag 0, and no other, says that it is 0', async t => {
  t.strictSame(tagOf(0n), { low: 0, high: 0, isZero: true })
  t.strictSame(ZERO_TAG, tagOf(0n))
  for (const value of [1n, 1n << 32n, 1n << 63n]) t.equal(tagOf(value).isZero, false, `${value}`)
})

t.test('no two tags are the same words', async t => {
  const random = seededRandom(t)
  for (let i = 0; i < 1000; i++) {
    const value = joined(random.word(), random.word())
    const { low, high } = tagOf(value)
    if (joined(low, high) !== value) t.fail(`${value}`)
  }
})

t.test('what is no tag is ERR_AM_ARGUMENT', async t => {
  for (const value of [undefined, null, 0, 1, '1', true, {}, Object(1n)]) {
    t.throws(() => tagOf(value as never), { name: 'TypeError', code: 'ERR_AM_ARGUMENT' }, String(value))
  }
  for (const value of [-1n, 1n << 64n, -(1n << 63n), 1n << 200n]) {
    t.throws(() => tagOf(value), { name: 'RangeError', code: 'ERR_AM_ARGUMENT' }, `${value}`)
  }
})
