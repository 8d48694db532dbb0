import t from 'tap'
import { endLoan, isShared, LENT_MAX, LENT_MIN, lend } from '../../../fastsockets/stream/lent-memory.ts'

const KEPT_MAX = 16

t.test('what was taken back is lent again, and nothing that is still out', async t => {
  const first = lend(LENT_MAX)
  const second = lend(LENT_MIN)
  t.equal(second.length, LENT_MIN)
  t.not(second.buffer, first.buffer)
  endLoan(first)
  const third = lend(LENT_MAX)
  t.equal(third.buffer, first.buffer)
  t.not(lend(LENT_MAX).buffer, first.buffer)
})

t.test('a program never gets a piece itself, but a copy of it', async t => {
  t.ok(isShared(lend(LENT_MAX)))
})

t.test(
  'what was not lent is not kept: parts of a piece, memory of others, with the same offset or the same size',
  async t => {
    const { buffer } = lend(LENT_MAX)
    const own = new ArrayBuffer(LENT_MAX)
    for (const strange of [
      Buffer.from(buffer, 4096, 4096),
      Buffer.from(own, 8, 4096),
      Buffer.alloc(LENT_MAX),
    ]) {
      endLoan(strange)
      t.not(lend(LENT_MAX).buffer, strange.buffer)
    }
  },
)

t.test('a limited number is kept', async t => {
  const pieces = Array.from({ length: 2 * KEPT_MAX }, () => lend(LENT_MAX))
  const known = new Set(pieces.map(({ buffer }) => buffer))
  t.equal(known.size, pieces.length)
  for (const piece of pieces) endLoan(piece)
  const again = pieces.map(() => lend(LENT_MAX))
  t.equal(again.filter(({ buffer }) => known.has(buffer)).length, KEPT_MAX)
})
