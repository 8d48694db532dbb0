/** The numbers of calls: as many as there are places, each of one call at a time, and none of a call that is over. */
import t from 'tap'
import { CallTable } from '../../../am/rpc/call-table.ts'
import { CALLS_MAX } from '../../../am/rpc/rpc-layout.ts'
import { seededRandom } from '../../support/random.ts'

t.test('own calls: every place once, and a new number each time', async t => {
  const table = new CallTable<number>()
  const ids = Array.from({ length: CALLS_MAX }, (_, i) => table.open(i))
  t.equal(new Set(ids).size, CALLS_MAX)
  t.ok(ids.every((id, i) => id > 0 && table.get(id) === i))
  t.equal(table.open(-1), 0, 'there is no place')
  const [first = 0] = ids
  t.ok(table.delete(first, true))
  t.notOk(table.delete(first, true), 'it is over')
  t.equal(table.get(first), undefined)
  const next = table.open(7)
  t.equal(next % CALLS_MAX, first % CALLS_MAX)
  t.not(next, first, 'what still comes for the first is not for the next one')
  t.equal(table.get(first), undefined)
  t.equal(table.clear().length, CALLS_MAX)
  t.equal(table.get(next), undefined)
})

t.test("the peer's calls have the numbers that it gives them", async t => {
  const random = seededRandom(t)
  const table = new CallTable<number>()
  const expected = new Map<number, number>()
  for (let i = 0; i < 20_000; i++) {
    const id = random.word() | 0
    const isFree = id > 0 && ![...expected.keys()].some(other => other % CALLS_MAX === id % CALLS_MAX)
    if (table.isFree(id) !== isFree) t.fail(`${id} is ${isFree ? '' : 'not '}free`)
    if (isFree) {
      table.accept(id, i)
      expected.set(id, i)
    }
    if (table.get(id) !== expected.get(id)) t.fail(`another call has number ${id}`)
    if (expected.size < 200) continue
    for (const [old, call] of expected) {
      if (table.get(old) !== call || !table.delete(old, false)) t.fail(`call ${old} is lost`)
    }
    expected.clear()
  }
  t.equal(table.clear().length, expected.size)
})
