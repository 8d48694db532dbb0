/** A driver that cannot register memory: bytes go in parts, and whatever else it throws leaves nothing behind. */
import t, { type Test } from 'tap'
import { type Endpoint, openEndpoint } from '../../am/index.ts'
import { type Driver, drivers, NicError, type VirtualInterface } from '../../nic/index.ts'
import { patterned } from '../support/frames.ts'
import { until } from '../support/until.ts'

const SINK = 1
const SEGMENT = 1 << 20
const LENGTH = 200_000

/** Loopback, with ends that throw that when they are to register something. */
function throwingDriver(error: Error): Driver {
  const loopback = drivers.get('loopback') as Driver
  const spoil = (end: VirtualInterface): VirtualInterface =>
    Object.defineProperty(end, 'register', {
      value: () => {
        throw error
      },
    })
  return {
    ...loopback,
    offer: options => {
      const offer = loopback.offer(options)
      return { ...offer, accepted: offer.accepted.then(spoil) }
    },
    connect: async (blob, options) => spoil(await loopback.connect(blob, options)),
  }
}

async function open(t: Test, driver: Driver | string): Promise<Endpoint> {
  const endpoint = await openEndpoint({ drivers: [driver], segment: SEGMENT })
  t.teardown(() => endpoint.close())
  return endpoint
}

t.test('long messages and gets arrive, both ways', async t => {
  const near = await open(t, throwingDriver(new NicError('ERR_NIC_SYSTEM', 'no more memory may be locked')))
  const far = await open(t, 'loopback')
  await near.map(0, far.name)
  await far.map(0, near.name)
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    let arrived = 0
    for (const endpoint of [from, to]) endpoint.setHandler(SINK, () => void arrived++)
    const payload = patterned(LENGTH, 1)
    t.equal(from.requestLong(0, SINK, payload, 100), 0)
    await until('the message', () => arrived === 1)
    t.ok(payload.equals(to.segment.subarray(100, 100 + LENGTH)))
    t.equal(from.get(0, SINK, 100, LENGTH, 300_000), 0)
    await until('the get', () => arrived === 2)
    t.ok(payload.equals(from.segment.subarray(300_000, 300_000 + LENGTH)))
  }
})

t.test('what is no refusal of the driver ends the connection on both sides', async t => {
  const broken = new Error('a bug')
  const [near, far] = [await open(t, throwingDriver(broken)), await open(t, 'loopback')]
  await near.map(0, far.name)
  await t.rejects(far.map(0, near.name), { code: 'ERR_AM_NO_SUCH_ENDPOINT' })
  await until('the peer to be gone', () => far.stats().peers.length === 0)
})
