/**
 * The verbs driver keeps every promise of the contract, over the kernel's own software RDMA device. With the fewest receives that
 * there can be, of the queue that many share, there is no room for as many frames as the suite sends at once; many.guest.ts does
 * that. Who sleeps is woken all the same, and one-sided operations find their places.
 */
import t from 'tap'
import { type Driver, drivers, OK, verbsCounters } from '../../../nic/index.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { testDoorbell } from '../../conformance/doorbell-conformance.ts'
import { testDriver } from '../../conformance/driver-conformance.ts'
import { testOneSided } from '../../conformance/one-sided-conformance.ts'
import { connectPair, type MakePair } from '../../conformance/pairs.ts'
import { Collector, drain, patterned, sendFrame } from '../../support/frames.ts'
import { takeOwnReceives } from '../own-receives.ts'
import { settledVerbs } from '../settled-verbs.ts'

/** Together more than one batch of completions, and each as few as a connection has receives for. */
const BUSY = 16
const BUSY_FRAMES = 10
/** Frames are on their way that long at most, in an emulator. */
const ARRIVAL_MS = 2000

await testDriver(t, settledVerbs())
await t.test('with receives that are shared', async t => {
  const own = takeOwnReceives(requireAdapter())
  const makePair: MakePair = t => connectPair(t, settledVerbs())
  await testDoorbell(t, makePair)
  await testOneSided(t, makePair)
  for (const end of own) end.close()
})
await t.test('one poll finds what lies behind the completions of other connections', async t => {
  const driver = drivers.get('verbs') as Driver
  const busy = await Promise.all(Array.from({ length: BUSY }, () => connectPair(t, driver)))
  const [near, far] = await connectPair(t, driver)
  for (let i = 0; i < BUSY_FRAMES; i++)
    for (const [busyNear] of busy) t.equal(sendFrame(busyNear, patterned(8, i)), OK)
  t.equal(sendFrame(near, patterned(8, 1)), OK)
  // The event loop must not look meanwhile.
  const endMs = performance.now() + ARRIVAL_MS
  while (performance.now() < endMs) {}
  const collector = new Collector()
  t.equal(far.poll(collector, 1), 1)
  t.strictSame(collector.frames, [patterned(8, 1)])
  for (const [, busyFar] of busy) t.equal(drain(busyFar).length, BUSY_FRAMES)
})
t.comment(JSON.stringify(verbsCounters()))
