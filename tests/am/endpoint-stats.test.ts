/** stats() reports what an endpoint has done, with each peer. */
import { NO_CREDIT, OK } from '../../am/index.ts'
import { DRIVER_LISTS } from '../support/driver-lists.ts'
import { deliver, pollUntil } from '../support/endpoints.ts'
import { until } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const SINK = 1
const ECHO = 2
const ANSWER = 3
const MANUAL = { progress: 'manual' } as const

testOver(DRIVER_LISTS, 'nothing has happened yet', async (t, world) => {
  const a = await world.open()
  t.strictSame(a.stats(), { handled: 0, peers: [] })
  const [b, c] = await world.openPair()
  t.match(b.stats().peers, [
    {
      name: c.name,
      state: 'open',
      destinations: [0],
      creditsLeft: 64,
      outstanding: 0,
      requests: 0,
      returned: 0,
    },
  ])
})

testOver(DRIVER_LISTS, 'every message is counted once, where it belongs', async (t, world) => {
  const [a, b] = await world.openPair({ credits: 8, segment: 1000 }, { credits: 8, segment: 1000, ...MANUAL })
  b.setHandler(SINK, () => {})
  b.setHandler(ECHO, message => message.reply(ANSWER))
  a.setHandler(ANSWER, () => {})
  a.setHandler(SINK, () => {})
  t.equal(a.request(0, SINK), OK)
  t.equal(a.requestMedium(0, SINK, new Uint8Array(10)), OK)
  t.equal(a.requestLong(0, ECHO, new Uint8Array(100), 0), OK)
  t.equal(a.request(0, 99), OK)
  for (let i = 0; i < 4; i++) t.equal(a.request(0, ECHO), OK)
  t.equal(a.request(0, SINK), NO_CREDIT)
  t.match(a.stats().peers, [
    {
      creditsLeft: 0,
      outstanding: 8,
      requests: 8,
      payloadBytes: 110,
      refusedForCredit: 1,
      refusedForRoom: 0,
    },
  ])
  await pollUntil('all of them', [b], () => a.stats().peers[0]?.outstanding === 0)
  t.match(a.stats().peers, [{ creditsLeft: 8, returned: 1, requests: 8 }])
  t.equal(b.stats().handled, 7, 'requests with a handler')
  t.equal(a.stats().handled, 5, 'replies; there is no handler 0')
  t.match(b.stats().peers, [{ requests: 0, payloadBytes: 0, returned: 0, outstanding: 0 }])

  await deliver(a, 0, () => a.get(0, SINK, 0, 100, 0))
  await until('the get', () => {
    b.poll()
    return a.stats().handled === 6
  })
  a.setHandler(0, () => {})
  t.equal(a.request(0, 99), OK)
  await pollUntil('its return', [b], () => a.stats().handled === 7)
  t.match(a.stats().peers, [{ returned: 2 }])
})

testOver(DRIVER_LISTS, 'two endpoints use the smaller number of credits', async (t, world) => {
  for (const [own, other] of [
    [1, 64],
    [64, 1],
    [3, 5],
    [1000, 32767],
  ] as const) {
    const [a, b] = await world.openPair({ credits: own }, { credits: other, ...MANUAL })
    t.equal(a.stats().peers[0]?.creditsLeft, Math.min(own, other))
    b.setHandler(SINK, () => {})
    let sent = 0
    while (a.request(0, SINK) === OK) sent++
    t.equal(sent, Math.min(own, other))
    t.equal(b.stats().peers[0]?.creditsLeft, Math.min(own, other))
    await pollUntil('all of them', [b], () => a.stats().peers[0]?.outstanding === 0)
  }
})

testOver(DRIVER_LISTS, 'a peer that has closed is there as long as it is mapped', async (t, world) => {
  const [a, b] = await world.openPair()
  await b.close()
  await until('it to be gone', () => a.stats().peers[0]?.state === 'gone')
  t.match(a.stats().peers, [{ name: b.name, destinations: [0], state: 'gone' }])
  a.unmap(0)
  await until('it to be forgotten', () => a.stats().peers.length === 0)
})

testOver(DRIVER_LISTS, 'what stats() says is a picture: it does not change later', async (t, world) => {
  const [a, b] = await world.openPair()
  b.setHandler(SINK, () => {})
  const before = a.stats()
  const copy = structuredClone(before)
  for (let i = 0; i < 10; i++) await deliver(a, 0, () => a.request(0, SINK))
  await a.map(5, b.name)
  t.strictSame(before, copy)
})
