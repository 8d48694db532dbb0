import t from 'tap'
import { WORDS_MAX } from '../../am/index.ts'
import { NO_WORDS, Words } from '../../am/words.ts'

const RIGHT = [0, -0, 1, -1, 0x7fff_ffff, -0x8000_0000]
const OUT_OF_RANGE = [1.5, 2 ** 31, -(2 ** 31) - 1, Number.NaN, Number.POSITIVE_INFINITY, 1e300, 2 ** -30]
const NO_NUMBERS: [what: string, word: unknown][] = [
  ['undefined', undefined],
  ['null', null],
  ['a boolean', true],
  ['a string', '1'],
  ['an empty string', ''],
  ['a bigint', 1n],
  ['a symbol', Symbol('one')],
  ['an array', [1]],
  ['an object that is worth a number', { valueOf: () => 1 }],
  [
    'an object that throws',
    {
      valueOf() {
        throw new Error('it was asked')
      },
    },
  ],
  ['a Number', Object(1)],
  ['a function', () => 1],
]

/** Both ways to set words, with `word` at `index` and zeros before it. */
function waysToSet(index: number, word: unknown): [what: string, set: (words: Words) => void][] {
  const list = [...new Array(index).fill(0), word] as number[]
  return [
    ['set', words => words.set(list.length, ...list)],
    ['setArray', words => words.setArray(list)],
  ]
}

t.test('0 to 8 words are set, one by one or as an array', async t => {
  const all = [1, -2, 3, -4, 5, -6, 7, -8]
  for (let count = 0; count <= WORDS_MAX; count++) {
    const words = new Words()
    words.set(count, ...all.slice(0, count))
    t.equal(words.count, count)
    t.strictSame(Array.from(words.values.subarray(0, count)), all.slice(0, count))
    const others = new Words()
    others.setArray(all.slice(0, count))
    t.strictSame(others, words)
  }
})

t.test('every 32-bit signed integer is a word, at every place', async t => {
  for (let index = 0; index < WORDS_MAX; index++) {
    for (const word of RIGHT) {
      for (const [what, set] of waysToSet(index, word)) {
        const words = new Words()
        set(words)
        t.equal(words.values[index], word | 0, `${what} ${word} at ${index}`)
      }
    }
  }
})

t.test('a number that is no 32-bit signed integer is a RangeError, at every place', async t => {
  for (let index = 0; index < WORDS_MAX; index++) {
    for (const word of OUT_OF_RANGE) {
      for (const [what, set] of waysToSet(index, word)) {
        const expected = { name: 'RangeError', code: 'ERR_AM_ARGUMENT', message: `word ${index} ` }
        t.throws(() => set(new Words()), expected, `${what} ${word} at ${index}`)
      }
    }
  }
})

t.test('what is no number is a TypeError, at every place', async t => {
  for (let index = 0; index < WORDS_MAX; index++) {
    for (const [name, word] of NO_NUMBERS) {
      for (const [what, set] of waysToSet(index, word)) {
        const expected = { name: 'TypeError', code: 'ERR_AM_ARGUMENT', message: `word ${index} ` }
        t.throws(() => set(new Words()), expected, `${what} ${name} at ${index}`)
      }
    }
  }
})

t.test('more than 8 words are a RangeError', async t => {
  const expected = { name: 'RangeError', code: 'ERR_AM_ARGUMENT', message: '9 words' }
  t.throws(() => new Words().set(9, 1, 2, 3, 4, 5, 6, 7, 8), expected)
  t.throws(() => new Words().setArray([1, 2, 3, 4, 5, 6, 7, 8, 9]), expected)
  t.throws(() => new Words().setArray(new Array(1e6)), { code: 'ERR_AM_ARGUMENT' })
})

t.test('what is no array of words is a TypeError', async t => {
  for (const list of [undefined, null, 5, '12', {}, { length: 1, 0: 1 }, new Int32Array(2), new Set([1])]) {
    const expected = { name: 'TypeError', code: 'ERR_AM_ARGUMENT' }
    t.throws(() => new Words().setArray(list as never), expected, String(list))
  }
})

t.test('words that were refused leave the count as it was', async t => {
  const words = new Words()
  words.set(2, 1, 2)
  t.throws(() => words.set(3, 1, 2, 1.5))
  t.throws(() => words.setArray([1, 2, 3, '4' as never]))
  t.equal(words.count, 2)
})

t.test('a copy lives on its own', async t => {
  const words = new Words()
  words.set(2, 1, 2)
  const copy = words.copy()
  words.set(1, 9)
  t.equal(copy.count, 2)
  t.strictSame(Array.from(copy.values), [1, 2, 0, 0, 0, 0, 0, 0])
  t.equal(NO_WORDS.count, 0)
})
