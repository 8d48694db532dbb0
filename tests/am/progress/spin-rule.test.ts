/** When a thread spins for the next message, and when it sleeps. */
import t from 'tap'
import { SpinRule } from '../../../am/progress/spin-rule.ts'

const CALM = { isContended: () => false }

/** `count` messages, `gapMs` apart, from `fromMs` on; returns when the last came. */
function arrive(rule: SpinRule, fromMs: number, gapMs: number, count: number): number {
  let nowMs = fromMs
  for (let i = 0; i < count; i++) {
    nowMs += gapMs
    rule.noteArrival(nowMs)
  }
  return nowMs
}

t.test('a thread begins by spinning, and gives up after a few spins in vain', async t => {
  const rule = new SpinRule(CALM)
  t.ok(rule.maySpin(0))
  rule.noteVain()
  rule.noteVain()
  t.notOk(rule.maySpin(0))
})

t.test('a message a millisecond is no reason to spin; a ping-pong is, also of sleepers', async t => {
  const rule = new SpinRule(CALM)
  let nowMs = arrive(rule, 0, 1, 100)
  t.notOk(rule.maySpin(nowMs))
  nowMs = arrive(rule, nowMs, 0.2, 8)
  t.ok(rule.maySpin(nowMs))
})

t.test('questions and answers with pauses between them: a spin in vain each time is too much', async t => {
  const rule = new SpinRule(CALM)
  let nowMs = 0
  let spins = 0
  for (let i = 0; i < 100; i++) {
    nowMs = arrive(rule, nowMs, 10, 1)
    nowMs = arrive(rule, nowMs, 0.1, 1)
    if (!rule.maySpin(nowMs)) continue
    spins++
    rule.noteVain()
  }
  t.ok(spins <= 2, `${spins} of 100`)
})

t.test('a pause now and then does not end the spinning of a busy thread', async t => {
  const rule = new SpinRule(CALM)
  let nowMs = 0
  for (let i = 0; i < 20; i++) {
    nowMs = arrive(rule, nowMs, 0.01, 50)
    rule.noteVain()
    nowMs = arrive(rule, nowMs, 10, 1)
    t.ok(rule.maySpin(nowMs))
  }
})

t.test('others that want the core come first, and are looked for only if it matters', async t => {
  let looks = 0
  const rule = new SpinRule({ isContended: () => ++looks > 0 })
  t.notOk(rule.maySpin(0))
  t.equal(looks, 1)
  arrive(rule, 0, 1, 100)
  rule.maySpin(100)
  t.equal(looks, 1)
})
