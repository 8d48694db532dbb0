import t from 'tap'
import { AckQueue } from '../../am/ack-queue.ts'
import {
  CREDITS_LIMIT,
  encodeRun,
  NO_SLOT,
  RUN_COUNT_SHIFT,
  RUN_FIRST_MASK,
} from '../../am/message-layout.ts'
import { seededRandom } from '../support/random.ts'

function beginAll(acks: AckQueue, slots: readonly number[]): void {
  for (const slot of slots) if (!acks.begin(slot)) throw new Error(`slot ${slot} may not begin`)
}

function addAll(acks: AckQueue, slots: readonly number[]): void {
  beginAll(acks, slots)
  for (const slot of slots) acks.add(slot)
}

/** The slots of a run of `size` slots in all. */
function slotsOf(run: number, size: number): number[] {
  const first = run & RUN_FIRST_MASK
  return Array.from({ length: run >>> RUN_COUNT_SHIFT }, (_, i) => (first + i) % size)
}

t.test('slots that are done with one after the other are one run', async t => {
  const acks = new AckQueue(8)
  addAll(acks, [0, 1, 2])
  t.equal(acks.pending, 3)
  t.equal(acks.dequeueRun(), encodeRun(0, 3))
  t.equal(acks.pending, 0)
  t.equal(acks.dequeueRun(), 0)
})

t.test('a run goes on across the end of the circle', async t => {
  const acks = new AckQueue(4)
  addAll(acks, [2, 3, 0, 1])
  t.equal(acks.dequeueRun(), encodeRun(2, 4))
  addAll(acks, [3, 0])
  t.equal(acks.dequeueRun(), encodeRun(3, 2))
})

t.test('what is done with out of order is as many runs as it takes', async t => {
  const acks = new AckQueue(8)
  beginAll(acks, [0, 1, 2, 3, 4, 5])
  for (const slot of [3, 0, 1, 5, 4]) acks.add(slot)
  t.equal(acks.pending, 5)
  const runs = [acks.dequeueRun(), acks.dequeueRun(), acks.dequeueRun(), acks.dequeueRun(), acks.dequeueRun()]
  t.strictSame(runs, [encodeRun(3, 1), encodeRun(0, 2), encodeRun(5, 1), encodeRun(4, 1), 0])
})

t.test('every slot alone: there is room for as many runs as slots', async t => {
  const acks = new AckQueue(5)
  const order = [4, 2, 0, 3, 1]
  for (let round = 0; round < 3; round++) {
    addAll(acks, order)
    t.strictSame(
      order.map(() => acks.dequeueRun()),
      order.map(slot => encodeRun(slot, 1)),
    )
    t.equal(acks.dequeueRun(), 0)
  }
})

t.test('a slot is used again only after it was given back or answered', async t => {
  const acks = new AckQueue(2)
  t.equal(acks.begin(0), true)
  t.equal(acks.begin(0), false, 'its request is being handled')
  acks.add(0)
  t.equal(acks.begin(0), false, 'it was not given back yet')
  acks.dequeueRun()
  t.equal(acks.begin(0), true)
  acks.answer(0)
  t.equal(acks.begin(0), true)
})

t.test('a slot that is none may not begin', async t => {
  const acks = new AckQueue(4)
  for (const slot of [4, 5, CREDITS_LIMIT, NO_SLOT, -1]) t.equal(acks.begin(slot), false, `slot ${slot}`)
})

t.test('an answered slot is in no run', async t => {
  const acks = new AckQueue(4)
  beginAll(acks, [0, 1, 2])
  acks.add(0)
  acks.answer(1)
  acks.add(2)
  t.equal(acks.pending, 2)
  t.strictSame(
    [acks.dequeueRun(), acks.dequeueRun(), acks.dequeueRun()],
    [encodeRun(0, 1), encodeRun(2, 1), 0],
  )
})

t.test('one slot alone, and as many as there can be', async t => {
  const one = new AckQueue(1)
  for (let round = 0; round < 3; round++) {
    addAll(one, [0])
    t.equal(one.dequeueRun(), encodeRun(0, 1))
  }
  const most = new AckQueue(CREDITS_LIMIT)
  addAll(
    most,
    Array.from({ length: CREDITS_LIMIT }, (_, slot) => slot),
  )
  const run = most.dequeueRun()
  t.ok(run > 0)
  t.equal(slotsOf(run, CREDITS_LIMIT).length, CREDITS_LIMIT)
  t.equal(most.pending, 0)
})

t.test('whatever happens, each slot comes back once and in the order in which it was done with', async t => {
  const random = seededRandom(t)
  for (let round = 0; round < 100; round++) {
    const size = random.within(1, 40)
    const acks = new AckQueue(size)
    const handling: number[] = []
    const done: number[] = []
    let next = 0
    for (let step = 0; step < 500; step++) {
      const what = random.within(0, 9)
      if (what < 4) {
        // As an honest peer does: around the circle, and now and then anywhere.
        const slot = random.chance(0.9) ? next : random.within(0, size + 1)
        const mayBegin = slot < size && !handling.includes(slot) && !done.includes(slot)
        if (acks.begin(slot) !== mayBegin) t.fail(`slot ${slot} in step ${step}`)
        if (mayBegin) handling.push(slot)
        next = (next + 1) % size
      } else if (what < 8 && handling.length > 0) {
        const at = random.chance(0.7) ? 0 : random.within(0, handling.length - 1)
        const [slot] = handling.splice(at, 1) as [number]
        if (random.chance(0.2)) {
          acks.answer(slot)
        } else {
          acks.add(slot)
          done.push(slot)
        }
      } else if (what >= 8) {
        const run = acks.dequeueRun()
        const slots = slotsOf(run, size)
        if (slots.length === 0 && done.length > 0) t.fail(`nothing came back in step ${step}`)
        if (slots.some((slot, i) => slot !== done[i]))
          t.fail(`${slots} came back in step ${step}, not ${done}`)
        done.splice(0, slots.length)
      }
      if (acks.pending !== done.length)
        t.fail(`${acks.pending} are pending in step ${step}, not ${done.length}`)
    }
  }
})
