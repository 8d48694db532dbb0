/** What is under way to a destination that is unmapped still arrives. */
import { OK, type ReceivedMessage } from '../../am/index.ts'
import { DRIVER_LISTS } from '../support/driver-lists.ts'
import { until } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const COUNTED = 1
const HELD = 2

testOver(DRIVER_LISTS, 'requests that were accepted are handled', async (t, world) => {
  const COUNT = 60
  const [a, b] = [await world.open(), await world.open()]
  let handled = 0
  let returned = 0
  a.setHandler(0, () => returned++)
  b.setHandler(COUNTED, () => handled++)
  for (let round = 1; round <= 20; round++) {
    await a.map(0, b.name)
    for (let i = 0; i < COUNT; i++) {
      while (a.request(0, COUNTED, i) !== OK) await a.ready(0)
    }
    a.unmap(0)
    await until('all of them', () => handled + returned === COUNT * round)
  }
  t.strictSame({ handled, returned }, { handled: 20 * COUNT, returned: 0 })
  await until('no connection', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
})

testOver(DRIVER_LISTS, 'a call that the peer still holds is answered', async (t, world) => {
  const [a, b] = [await world.open(), await world.open()]
  await a.map(0, b.name)
  const held: ReceivedMessage[] = []
  const stream = b.messages(HELD)[Symbol.asyncIterator]()
  const reply = a.call(0, HELD, undefined, [7])
  const { value } = await stream.next()
  held.push(value)
  a.unmap(0)
  // Time enough for the connection to be let go of, if that could happen.
  await new Promise(resolve => setTimeout(resolve, 50))
  held[0]?.reply(1, 70)
  t.equal((await reply).word(0), 70)
  await stream.return?.()
  await until('no connection', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
})
