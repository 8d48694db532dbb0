/** Unmapped connections end, and lose nothing that is still under way. */
import { type Endpoint, handleEach, OK, type ReceivedMessage } from '../../am/index.ts'
import { DRIVER_LISTS } from '../support/driver-lists.ts'
import { errorOf, keepArrivals } from '../support/endpoints.ts'
import { seededRandom } from '../support/random.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const SINK = 1
const ECHO = 2
const ANSWER = 3
const NOBODY = 99

function setEcho(endpoint: Endpoint): void {
  endpoint.setHandler(ECHO, message => message.reply(ANSWER, message.word(0)))
}

/** So that what was said outside of the queue has been heard by then. */
async function someTurns(): Promise<void> {
  for (let i = 0; i < 200; i++) await new Promise(resolve => setImmediate(resolve))
}

testOver(DRIVER_LISTS, 'requests that were accepted are handled', async (t, world) => {
  const COUNT = 60
  const [a, b] = [await world.open(), await world.open()]
  let handled = 0
  let returned = 0
  a.setHandler(0, () => returned++)
  b.setHandler(SINK, () => handled++)
  for (let round = 1; round <= 20; round++) {
    await a.map(0, b.name)
    for (let i = 0; i < COUNT; i++) {
      while (a.request(0, SINK, i) !== OK) await a.ready(0)
    }
    a.unmap(0)
    await until('all of them', () => handled + returned === COUNT * round)
  }
  t.strictSame({ handled, returned }, { handled: 20 * COUNT, returned: 0 })
  await until('no connection', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
})

testOver(
  DRIVER_LISTS,
  'a peer that looks late finds what was sent before the unmapping',
  async (t, world) => {
    const [a, b] = [await world.open(), await world.open({ progress: 'manual' })]
    const arrivals = keepArrivals(b, SINK)
    a.setHandler(0, message => t.fail(`returned: ${message.reason}`))
    setEcho(b)
    await a.map(0, b.name)
    for (let i = 0; i < 5; i++) t.equal(a.request(0, SINK, i), OK)
    const call = errorOf(a.call(0, ECHO, undefined, [9]))
    a.unmap(0)
    await someTurns()
    await until('all of them', () => {
      b.poll()
      return arrivals.length === 5
    })
    t.match(await withWatchdog('the reply', call), { resolved: { words: [9] } })
    await until('both to forget', () => {
      b.poll()
      return a.stats().peers.length === 0 && b.stats().peers.length === 0
    })
  },
)

testOver(
  DRIVER_LISTS,
  'replies that come back after the unmapping are found by one who looks late, and slowly',
  async (t, world) => {
    const COUNT = 5
    const [a, b] = [await world.open(), await world.open({ progress: 'manual' })]
    const returned: unknown[] = []
    let handled = 0
    b.setHandler(0, message => returned.push(message.reason))
    b.setHandler(ECHO, message => {
      handled++
      message.reply(NOBODY)
    })
    await a.map(0, b.name)
    for (let i = 0; i < COUNT; i++) t.equal(a.request(0, ECHO), OK)
    a.unmap(0)
    await until('the requests', () => {
      if (handled < COUNT) b.poll()
      return handled === COUNT
    })
    await someTurns()
    await until('both to forget', () => {
      b.poll(1)
      return a.stats().peers.length === 0 && b.stats().peers.length === 0
    })
    t.strictSame(returned, new Array(COUNT).fill('NO_SUCH_HANDLER'))
  },
)

testOver(
  DRIVER_LISTS,
  'a request that a stream still holds is answered after the unmapping',
  async (t, world) => {
    const [a, b] = [await world.open(), await world.open()]
    a.setHandler(0, message => t.fail(`returned: ${message.reason}`))
    let isOpen = false
    const answer = async (message: ReceivedMessage): Promise<void> => {
      await until('the test', () => isOpen)
      message.reply(ANSWER, message.word(0))
    }
    b.messages(ECHO).pipe(handleEach(answer)).subscribe()
    await a.map(0, b.name)
    const calls = [1, 2, 3].map(number => errorOf(a.call(0, ECHO, undefined, [number])))
    a.unmap(0)
    await someTurns()
    isOpen = true
    const replies = await withWatchdog('the replies', Promise.all(calls))
    t.match(replies, [
      { resolved: { words: [1] } },
      { resolved: { words: [2] } },
      { resolved: { words: [3] } },
    ])
    await until('both to forget', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
  },
)

testOver(
  DRIVER_LISTS,
  'map, call, unmap, by all endpoints at once and without a pause: every call is answered',
  async (t, world) => {
    const STEPS = 150
    const random = seededRandom(t)
    const endpoints = await Promise.all([0, 1, 2, 3].map(() => world.open()))
    for (const endpoint of endpoints) setEcho(endpoint)
    const failures: unknown[] = []
    const live = async (endpoint: Endpoint): Promise<void> => {
      for (let step = 0; step < STEPS; step++) {
        const destination = random.within(0, 2)
        try {
          await endpoint.map(destination, random.pick(endpoints as [Endpoint, ...Endpoint[]]).name)
          const calls = Array.from({ length: random.within(1, 4) }, (_, i) =>
            endpoint.call(destination, ECHO, undefined, [i]),
          )
          if (random.chance(0.3)) endpoint.unmap(destination)
          const replies = await Promise.all(calls)
          if (!replies.every((reply, i) => reply.word(0) === i)) failures.push('another reply')
          if (random.chance(0.3)) endpoint.unmap(destination)
        } catch (error) {
          failures.push(error)
        }
      }
      for (const destination of [0, 1, 2]) endpoint.unmap(destination)
    }
    await Promise.all(endpoints.map(live))
    t.strictSame(failures, [])
    await until('all to forget all', () => endpoints.every(endpoint => endpoint.stats().peers.length === 0))
  },
)

testOver(DRIVER_LISTS, 'a handler that unmaps keeps the payload that it was given', async (t, world) => {
  const SIZE = 1000
  const [a, b] = [await world.open(), await world.open()]
  b.setHandler(ECHO, message => message.replyMedium(ANSWER, new Uint8Array(SIZE).fill(7)))
  await a.map(0, b.name)
  let payload: Buffer | undefined
  a.setHandler(ANSWER, message => {
    a.unmap(0)
    payload = message.copy()
  })
  t.equal(a.request(0, ECHO), OK)
  await until('the answer', () => payload !== undefined)
  t.strictSame(payload, Buffer.alloc(SIZE, 7))
  await until('no connection', () => a.stats().peers.length === 0 && b.stats().peers.length === 0)
})
