/**
 * A client whose own event loop was busy until its time for a greeting was over calls the next candidate without a negative wait,
 * of which Node 24 and later warn on standard error.
 */
import { Socket } from 'node:net'
import t from 'tap'
import { callHashedPort, Race } from '../../../fastsockets/bootstrap/bootstrap-client.ts'
import { realKernel } from '../../../fastsockets/bootstrap/kernel.ts'
import { realClock } from '../../../nic/clock.ts'

const LIMIT_MS = 20
const BUSY_MS = 100

t.test('no timer of a late client has a negative wait', async t => {
  const waits: number[] = []
  const clock: typeof realClock = {
    ...realClock,
    setTimeout: (listener, delayMs) => {
      waits.push(delayMs)
      return realClock.setTimeout(listener, delayMs)
    },
  }
  let callCount = 0
  const silent = (): Socket => {
    callCount++
    return new Socket()
  }
  const sought = { address: '127.0.0.1', port: 7001, family: 4 as const }
  const follow = () => Promise.reject(new Error('no server has greeted'))
  const outcome = callHashedPort(sought, silent, new Race(), follow, LIMIT_MS, { ...realKernel, clock })
  const endMs = performance.now() + BUSY_MS
  while (performance.now() < endMs);
  t.equal((await outcome).code, 'SILENT')
  t.ok(callCount > 1, 'the next candidate was called, too')
  t.strictSame(
    waits.filter(ms => ms < 0),
    [],
  )
})
