import t from 'tap'
import { CreditSlots } from '../../am/credit-slots.ts'
import { CREDITS_LIMIT, NO_SLOT } from '../../am/message-layout.ts'
import { seededRandom } from '../support/random.ts'

function take(slots: CreditSlots): number {
  const slot = slots.next
  slots.acquire()
  return slot
}

t.test('slots are given out in a circle, each once, until none is left', async t => {
  const slots = new CreditSlots(3)
  t.equal(slots.freeCount, 3)
  t.strictSame([take(slots), take(slots), take(slots)], [0, 1, 2])
  t.equal(slots.freeCount, 0)
  t.equal(slots.next, -1)
  for (const slot of [0, 1, 2]) t.ok(slots.isOut(slot))
})

t.test('to look at the next slot takes nothing', async t => {
  const slots = new CreditSlots(2)
  t.strictSame([slots.next, slots.next, slots.freeCount, slots.isOut(0)], [0, 0, 2, false])
})

t.test('slots come back in any order, and go out again in that order', async t => {
  const slots = new CreditSlots(4)
  for (let i = 0; i < 4; i++) take(slots)
  for (const slot of [2, 0, 3]) t.equal(slots.release(slot), true)
  t.strictSame([take(slots), take(slots), take(slots)], [2, 0, 3])
  t.equal(slots.next, -1)
})

t.test('the peer cannot give back what it never had', async t => {
  const slots = new CreditSlots(4)
  take(slots)
  t.equal(slots.release(0), true)
  for (const slot of [0, 1, 3, 4, 63, CREDITS_LIMIT, NO_SLOT, -1]) {
    t.equal(slots.release(slot), false, `slot ${slot}`)
    t.equal(slots.isOut(slot), false, `slot ${slot}`)
  }
  t.equal(slots.freeCount, 4)
})

t.test('a kept slot comes back by this side only', async t => {
  const slots = new CreditSlots(2)
  take(slots)
  slots.keep(0)
  t.equal(slots.isOut(0), false)
  t.equal(slots.release(0), false, 'the peer may not')
  t.equal(slots.freeCount, 1)
  slots.releaseKept(0)
  t.equal(slots.freeCount, 2)
  t.strictSame([take(slots), take(slots)], [1, 0])
})

t.test('there may be one slot, and as many as fit into 15 bits', async t => {
  for (const size of [1, CREDITS_LIMIT]) {
    const slots = new CreditSlots(size)
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < size; i++) if (take(slots) !== i) t.fail(`slot ${i} of ${size} in round ${round}`)
      t.equal(slots.next, -1)
      for (let i = 0; i < size; i++) if (!slots.release(i)) t.fail(`slot ${i} of ${size} in round ${round}`)
      t.equal(slots.freeCount, size)
    }
  }
})

t.test('whatever is done with them, they do as a list of free slots does', async t => {
  const random = seededRandom(t)
  for (let round = 0; round < 100; round++) {
    const size = random.within(1, 40)
    const slots = new CreditSlots(size)
    const free = Array.from({ length: size }, (_, slot) => slot)
    const out = new Set<number>()
    const kept = new Set<number>()
    for (let step = 0; step < 500; step++) {
      const slot = random.within(0, size + 1)
      const what = random.within(0, 3)
      if (what === 0 && free.length > 0) {
        const taken = take(slots)
        if (taken !== free.shift()) t.fail(`slot ${taken} was taken`)
        out.add(taken)
      } else if (what === 1) {
        if (slots.release(slot) !== out.has(slot)) t.fail(`slot ${slot} was given back`)
        if (out.delete(slot)) free.push(slot)
      } else if (what === 2 && out.delete(slot)) {
        slots.keep(slot)
        kept.add(slot)
      } else if (what === 3 && kept.delete(slot)) {
        slots.releaseKept(slot)
        free.push(slot)
      }
      if (slots.freeCount !== free.length || slots.next !== (free[0] ?? -1)) t.fail(`step ${step}`)
      if (slots.isOut(slot) !== out.has(slot)) t.fail(`slot ${slot} in step ${step}`)
    }
  }
})
