/**
 * The verbs driver keeps every promise of the contract, over the kernel's own software RDMA device. With the fewest receives that
 * there can be, of the queue that many share, there is no room for as many frames as the suite sends at once; many.guest.ts does
 * that. Who sleeps is woken all the same, and one-sided operations find their places.
 */
import t from 'tap'
import { verbsCounters } from '../../../nic/index.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { testDoorbell } from '../../conformance/doorbell-conformance.ts'
import { connectPair, type MakePair, testDriver } from '../../conformance/driver-conformance.ts'
import { testOneSided } from '../../conformance/one-sided-conformance.ts'
import { takeOwnReceives } from '../own-receives.ts'
import { settledVerbs } from '../settled-verbs.ts'

await testDriver(t, settledVerbs())
await t.test('with receives that are shared', async t => {
  const own = takeOwnReceives(requireAdapter())
  const makePair: MakePair = t => connectPair(t, settledVerbs())
  await testDoorbell(t, makePair)
  await testOneSided(t, makePair)
  for (const end of own) end.close()
})
t.comment(JSON.stringify(verbsCounters()))
