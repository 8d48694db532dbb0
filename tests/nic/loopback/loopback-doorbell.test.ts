import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { openLoopbackPair, type VirtualInterface } from '../../../nic/index.ts'
import { drain, sendFrame } from '../../support/frames.ts'

const CONTENT = Buffer.from('once more')

t.test('who waits is woken before the immediates of the turn', async t => {
  const [near, far] = openLoopbackPair()
  t.teardown(() => near.close())
  const log: string[] = []
  far.setDoorbell(() => log.push('doorbell'))
  t.ok(far.arm(0))
  setImmediate(() => log.push('immediate'))
  sendFrame(near, CONTENT)
  await delay(5)
  // On a busy machine the timer may be first.
  await new Promise(setImmediate)
  t.strictSame(log, ['doorbell', 'immediate'])
})

t.test('two listeners that answer each other let timers have their turns', async t => {
  const ends = openLoopbackPair()
  t.teardown(() => ends[0].close())
  let answers = 0
  let isOver = false
  const answer = (end: VirtualInterface): void => {
    drain(end)
    // Without turns of the event loop this would go on for ever: then it ends, and the test has failed.
    if (isOver || ++answers > 1_000_000) return
    end.arm(0)
    sendFrame(end, CONTENT)
  }
  for (const end of ends) {
    end.setDoorbell(() => answer(end))
    end.arm(0)
  }
  sendFrame(ends[0], CONTENT)
  await delay(10)
  isOver = true
  t.ok(answers > 1 && answers < 1_000_000, `${answers} answers`)
})
