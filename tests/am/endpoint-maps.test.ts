/** The translation table: which number stands for which endpoint, and when a connection without a mapping ends. */
import { type Endpoint, OK, openEndpoint } from '../../am/index.ts'
import { DRIVER_LISTS } from '../support/driver-lists.ts'
import { deliver, errorOf, keepArrivals } from '../support/endpoints.ts'
import { liveMemory } from '../support/garbage.ts'
import { descriptorCount, memfdMappingCount } from '../support/resources.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const SINK = 1
const ECHO = 2
const ANSWER = 3
const NOBODY = 99

function setEcho(endpoint: Endpoint): void {
  endpoint.setHandler(ECHO, message => message.reply(ANSWER, message.word(0), message.destination ?? -1))
}

testOver(DRIVER_LISTS, 'one name at several destinations is one connection', async (t, world) => {
  const [a, b] = [await world.open(), await world.open()]
  setEcho(b)
  const returned = keepArrivals(a, 0)
  await Promise.all([3, 0, 65535, 7].map(destination => a.map(destination, b.name)))
  t.equal(a.stats().peers.length, 1)
  t.strictSame(
    a.stats().peers[0]?.destinations.toSorted((x, y) => x - y),
    [0, 3, 7, 65535],
  )
  for (const destination of [3, 0, 65535, 7]) {
    t.equal((await a.call(destination, ECHO, undefined, [destination])).word(0), destination)
    t.equal(a.request(destination, NOBODY), OK)
    await until('its return', () => returned.length > 0)
    t.equal(returned.pop()?.destination, destination, 'what comes back says where it was sent')
  }
  for (const destination of [3, 0, 65535]) a.unmap(destination)
  t.equal((await a.call(7, ECHO, undefined, [1])).word(0), 1)
  t.throws(() => a.request(3, ECHO), { code: 'ERR_AM_NOT_MAPPED' })
})

testOver(DRIVER_LISTS, 'three thousand maps at once', async (t, world) => {
  const [a, b] = [await world.open(), await world.open()]
  setEcho(b)
  await Promise.all(Array.from({ length: 3000 }, (_, destination) => a.map(destination, b.name)))
  t.equal(a.stats().peers.length, 1)
  t.equal(a.stats().peers[0]?.destinations.length, 3000)
  t.equal((await a.call(2999, ECHO, undefined, [5])).word(0), 5)
  for (let destination = 0; destination < 3000; destination++) a.unmap(destination)
  await until('both to forget', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
})

testOver(DRIVER_LISTS, 'one name with several tags: each destination shows its own', async (t, world) => {
  const a = await world.open({ segment: 100 })
  const b = await world.open({ segment: 100, tag: 7n })
  const arrivals = keepArrivals(b, SINK)
  const returned = keepArrivals(a, 0)
  const tags = [0n, 7n, 8n, 7n, 2n ** 64n - 1n]
  await Promise.all(tags.map((tag, destination) => a.map(destination, b.name, tag)))
  t.equal(a.stats().peers.length, 1)
  for (const [destination] of tags.entries()) {
    await deliver(a, destination, () => a.request(destination, SINK, destination))
    await deliver(a, destination, () => a.requestLong(destination, SINK, Buffer.alloc(10), 0, destination))
  }
  await until('all of them', () => arrivals.length + returned.length === 2 * tags.length)
  t.strictSame(arrivals.map(({ words }) => words[0]).toSorted(), [1, 1, 3, 3])
  t.strictSame(returned.map(({ words, destination }) => [words[0], destination]).toSorted(), [
    [0, 0],
    [0, 0],
    [2, 2],
    [2, 2],
    [4, 4],
    [4, 4],
  ])
  t.ok(returned.every(({ reason }) => reason === 'BAD_TAG'))
})

testOver(
  DRIVER_LISTS,
  'a destination that is mapped again stands for the new endpoint at once',
  async (t, world) => {
    const a = await world.open()
    const others = [await world.open(), await world.open(), await world.open()]
    for (const [i, other] of others.entries()) other.setHandler(ECHO, message => message.reply(ANSWER, i))
    for (let round = 0; round < 9; round++) {
      await a.map(0, (others[round % 3] as Endpoint).name)
      t.equal((await a.call(0, ECHO)).word(0), round % 3)
      await until('one connection', () => a.stats().peers.length === 1)
    }
    await a.map(0, (others[2] as Endpoint).name)
    t.equal((await a.call(0, ECHO)).word(0), 2, 'the same one, too')
  },
)

testOver(
  DRIVER_LISTS,
  'unmap and map again, many times: no connection, descriptor or mapping is left',
  async (t, world) => {
    const [a, b] = [await world.open({ segment: 1000 }), await world.open({ segment: 1000 })]
    setEcho(b)
    const round = async (): Promise<void> => {
      await a.map(0, b.name)
      t.equal((await a.call(0, ECHO, undefined, [5])).word(0), 5)
      a.unmap(0)
      a.unmap(0)
      await until('both to forget', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
    }
    await round()
    const [descriptors, mappings] = [descriptorCount(), memfdMappingCount()]
    for (let i = 0; i < 40; i++) await round()
    // There may be fewer: what earlier tests have left may have gone meanwhile.
    await until(
      'nothing to be left',
      () => descriptorCount() <= descriptors && memfdMappingCount() <= mappings,
    )
  },
)

testOver(
  DRIVER_LISTS,
  'what is under way to an unmapped destination still arrives, or comes back',
  async (t, world) => {
    const [a, b] = [await world.open(), await world.open({ progress: 'manual' })]
    const arrivals = keepArrivals(b, SINK)
    const returned = keepArrivals(a, 0)
    setEcho(b)
    await a.map(0, b.name)
    for (let i = 0; i < 5; i++) t.equal(a.request(0, SINK, i), OK)
    for (let i = 0; i < 5; i++) t.equal(a.request(0, NOBODY, i), OK)
    const call = a.call(0, ECHO, undefined, [9])
    a.unmap(0)
    t.equal(a.stats().peers.length, 1, 'it is still needed')
    await until('all of them', () => {
      b.poll()
      return arrivals.length === 5 && returned.length === 5
    })
    t.equal((await call).word(0), 9)
    await until('both to forget', () => {
      b.poll()
      return a.stats().peers.length === 0 && b.stats().peers.length === 0
    })
  },
)

testOver(DRIVER_LISTS, 'one side unmaps: the other still talks', async (t, world) => {
  const [a, b] = await world.openPair()
  for (const endpoint of [a, b]) setEcho(endpoint)
  a.unmap(0)
  for (let i = 0; i < 10; i++) t.equal((await b.call(0, ECHO, undefined, [i])).word(0), i)
  t.equal(a.stats().peers.length, 1)
  await a.map(4, b.name)
  t.equal(a.stats().peers.length, 1, 'and over the same connection')
  t.equal((await b.call(0, ECHO, undefined, [1])).word(1), 4, 'messages say where their sender is mapped')
})

testOver(DRIVER_LISTS, 'an endpoint may map itself', async (t, world) => {
  const a = await world.open({ segment: 1000 })
  setEcho(a)
  const arrivals = keepArrivals(a, SINK)
  await a.map(5, a.name)
  await a.map(6, a.name)
  t.equal((await a.call(5, ECHO, undefined, [3])).word(0), 3)
  t.equal((await a.call(6, ECHO, undefined, [4])).word(0), 4)
  await deliver(a, 5, () => a.requestLong(5, SINK, Buffer.from('to myself'), 10))
  await until('the message', () => arrivals.length === 1)
  await deliver(a, 5, () => a.get(5, SINK, 10, 9, 100))
  await until('both', () => arrivals.length === 2)
  t.strictSame(
    arrivals.map(({ payload }) => String(payload)),
    ['to myself', 'to myself'],
  )
  t.ok(arrivals.every(({ source }) => source === a.name))
  a.unmap(5)
  t.equal((await a.call(6, ECHO, undefined, [7])).word(0), 7)
  a.unmap(6)
  await until('it to be forgotten', () => a.stats().peers.length === 0)
})

testOver(DRIVER_LISTS, 'two endpoints that map each other at the same moment', async (t, world) => {
  for (let round = 0; round < 10; round++) {
    const [a, b] = [await world.open(), await world.open()]
    for (const endpoint of [a, b]) setEcho(endpoint)
    await Promise.all([a.map(1, b.name), b.map(2, a.name)])
    const [there, back] = await Promise.all([
      a.call(1, ECHO, undefined, [10]),
      b.call(2, ECHO, undefined, [20]),
    ])
    t.strictSame([there.word(0), back.word(0)], [10, 20])
    t.strictSame([there.word(1), back.word(1)], [2, 1], 'each knows where it has mapped the sender')
    a.unmap(1)
    b.unmap(2)
    await until('both to forget', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
    await a.map(1, b.name)
    t.equal((await a.call(1, ECHO, undefined, [30])).word(0), 30)
  }
})

testOver(
  DRIVER_LISTS,
  'map while the peer closes: it is mapped, or the error says that it is gone',
  async (t, world) => {
    const a = await world.open()
    let mapped = 0
    let returned = 0
    a.setHandler(0, message => {
      if (message.reason === 'PEER_CLOSED' || message.reason === 'NO_SUCH_ENDPOINT') returned++
    })
    for (let round = 0; round < 30; round++) {
      const b = await world.open()
      const mapping = errorOf(a.map(0, b.name))
      for (let i = 0; i < round % 10; i++) await new Promise(resolve => setImmediate(resolve))
      const closing = b.close()
      const outcome = (await withWatchdog('the map', mapping)) as { code?: string }
      if (outcome.code === undefined) mapped++
      else t.match(outcome, { code: 'ERR_AM_NO_SUCH_ENDPOINT' })
      await withWatchdog('the close', closing)
      await a.ready(0)
      t.equal(a.request(0, SINK), OK)
      await until('its return', () => returned === round + 1)
    }
    t.comment(`${mapped} of 30 were mapped in time`)
  },
)

testOver(
  DRIVER_LISTS,
  'close while maps are under way, on either side, leaves nothing behind',
  async (t, world) => {
    const round = async (turns: number): Promise<void> => {
      const [a, b] = [await world.open(), await world.open()]
      const maps = [a.map(0, b.name), a.map(1, b.name, 5n), b.map(0, a.name), a.map(2, a.name)].map(errorOf)
      for (let i = 0; i < turns; i++) await new Promise(resolve => setImmediate(resolve))
      const closing = a.close()
      for (const outcome of (await withWatchdog('the maps', Promise.all(maps))) as { code?: string }[]) {
        if (outcome.code !== undefined)
          t.match(outcome.code, /^ERR_AM_(CLOSED|NO_SUCH_ENDPOINT|UNREACHABLE)$/)
      }
      await withWatchdog('the close', closing)
      await until('it to be forgotten', () =>
        b.stats().peers.every(({ destinations }) => destinations.length > 0),
      )
      await b.close()
    }
    for (let i = 0; i < 15; i++) await round(i)
    const before = [descriptorCount(), memfdMappingCount()]
    for (let i = 0; i < 45; i++) await round(i % 15)
    await until('the descriptors', () => descriptorCount() <= (before[0] as number))
    // Over TCP, connections that linger after their close may count in `before`.
    t.ok(descriptorCount() <= (before[0] as number))
    t.equal(memfdMappingCount(), before[1])
  },
)

testOver(DRIVER_LISTS, 'endpoints that are closed give back their segments', async (t, world) => {
  const SEGMENT = 4 << 20
  const round = async (): Promise<void> => {
    // Not by the world, which keeps its endpoints until the end of the test.
    const options = { drivers: world.list.drivers, segment: SEGMENT }
    const [a, b] = [await openEndpoint(options), await openEndpoint(options)]
    await Promise.all([a.map(0, b.name), b.map(0, a.name)])
    const arrivals = keepArrivals(b, SINK)
    await deliver(a, 0, () => a.requestLong(0, SINK, Buffer.alloc(100_000, 1), 0))
    await until('the message', () => arrivals.length === 1)
    await Promise.all([a.close(), b.close()])
  }
  for (let i = 0; i < 3; i++) await round()
  const before = await liveMemory()
  for (let i = 0; i < 20; i++) await round()
  // The last connections are over a moment later.
  let growth = Number.POSITIVE_INFINITY
  for (let i = 0; i < 50 && growth >= 10 * SEGMENT; i++) {
    growth = (await liveMemory()) - before
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  t.ok(growth < 10 * SEGMENT, `${(growth / 2 ** 20).toFixed(1)} MiB more after 40 segments of 4 MiB`)
})
