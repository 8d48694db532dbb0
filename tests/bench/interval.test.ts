/** How sure a median is, by the order of the rounds alone. */
import t from 'tap'
import { intervalOf, levelText, saysSomething } from '../../bench/interval.ts'
import { FaultRandom } from '../../nic/fault/fault-random.ts'

const TRIALS = 4000

t.test(
  'few rounds have no interval, five have theirs from end to end, many leave the outermost out',
  async t => {
    for (const rounds of [1, 2, 3, 4]) {
      t.notOk(saysSomething(rounds))
      t.equal(levelText(rounds), '')
    }
    t.equal(levelText(5), '93 %')
    t.strictSame(intervalOf([3, 1, 2, 5, 4]), { low: 1, high: 5 })
    t.equal(levelText(6), '96 %')
    t.strictSame(intervalOf([3, 1, 2, 5, 4, 6, 9, 8, 7]), { low: 2, high: 8 })
    t.equal(levelText(9), '96 %')
    t.strictSame(intervalOf([7]), { low: 7, high: 7 })
  },
)

t.test('so often, and not much oftener, the true median lies in it, whatever the distribution', async t => {
  const random = new FaultRandom(1)
  for (const rounds of [5, 6, 9, 20]) {
    const level = Number.parseInt(levelText(rounds), 10) / 100
    for (const skew of [1, 8]) {
      let inside = 0
      for (let trial = 0; trial < TRIALS; trial++) {
        const values = Array.from({ length: rounds }, () => (random.word() / 2 ** 32) ** skew)
        const { low, high } = intervalOf(values)
        const median = 0.5 ** skew
        if (low <= median && median <= high) inside++
      }
      const share = inside / TRIALS
      t.ok(
        share > level - 0.015 && share < level + 0.025,
        `${rounds} rounds: ${share}, which is said to be ${level}`,
      )
    }
  }
})
