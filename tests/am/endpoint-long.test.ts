/** Long messages and gets, one-sided and in parts: the right bytes in the right place, and nothing beside it. */
import type { Test } from 'tap'
import { type Endpoint, type Message, NO_RESOURCE, OK } from '../../am/index.ts'
import { COPYING_DRIVER_LISTS, DRIVER_LISTS } from '../support/driver-lists.ts'
import { type Arrival, arrivalOf, deliver, eightWords, keepArrivals } from '../support/endpoints.ts'
import { patterned } from '../support/frames.ts'
import { seededRandom } from '../support/random.ts'
import { until } from '../support/until.ts'
import { testOver, type World } from '../support/world.ts'

const LISTS = [...DRIVER_LISTS, ...COPYING_DRIVER_LISTS]
const SINK = 1
const ECHO = 2
const ANSWER = 3
const SEGMENT = 4 << 20
const FILL = 0xa5
/** Around what travels in one frame, one PART, several, and more than the queue holds. */
const SIZES = [0, 1, 7, 8, 9, 65535, 65536, 65537, 131071, 131072, 131073, 200_001, 1 << 20, 3_000_017]

/** Two endpoints with segments full of a byte that no transfer should touch where it does not belong. */
async function openSegments(world: World, credits = 64): Promise<[Endpoint, Endpoint]> {
  const pair = await world.openPair({ segment: SEGMENT, credits }, { segment: SEGMENT, credits })
  for (const { segment } of pair) segment.fill(FILL)
  return pair
}

/** Exactly `expected` lies at `offset`, and nothing else has been touched; then all is as before. */
function expectOnly(t: Test, segment: Uint8Array, offset: number, expected: Buffer, what: string): void {
  const end = offset + expected.length
  t.ok(expected.equals(segment.subarray(offset, end)), `${what}: the bytes`)
  const isUntouched = (part: Uint8Array): boolean => Buffer.alloc(part.length, FILL).equals(part)
  t.ok(
    isUntouched(segment.subarray(0, offset)) && isUntouched(segment.subarray(end)),
    `${what}: nothing else`,
  )
  segment.fill(FILL, offset, end)
}

testOver(LISTS, 'long messages of all sizes lie at their offset when the handler runs', async (t, world) => {
  const [a, b] = await openSegments(world)
  let isDone = false
  for (const [number, size] of SIZES.entries()) {
    for (const offset of [0, 1, 4093, SEGMENT - size]) {
      const payload = patterned(size, number)
      b.setHandler(SINK, message => {
        const what = `${size} bytes at ${offset}`
        t.match(message, { length: size, offset, isRequest: true }, what)
        t.ok(payload.equals(message.payload()), what)
        t.equal(message.word(0), size)
        isDone = true
      })
      await deliver(a, 0, () => a.requestLong(0, SINK, payload, offset, size))
      await until(`${size} bytes`, () => isDone)
      isDone = false
      expectOnly(t, b.segment, offset, payload, `${size} bytes at ${offset}`)
    }
  }
})

testOver(LISTS, "the payload is the sender's again as soon as the call returns", async (t, world) => {
  const [a, b] = await openSegments(world)
  const arrivals = keepArrivals(b, SINK)
  for (const [number, size] of SIZES.entries()) {
    const payload = patterned(size, number)
    await deliver(a, 0, () => {
      patterned(size, number).copy(payload)
      const status = a.requestLong(0, SINK, payload, 0)
      payload.fill(0xee)
      return status
    })
    await until(`${size} bytes`, () => arrivals.length === number + 1)
    t.ok(arrivals[number]?.payload.equals(patterned(size, number)), `${size} bytes`)
  }
})

testOver(LISTS, 'gets of all sizes lie at their place when the handler runs', async (t, world) => {
  const [a, b] = await openSegments(world)
  b.setHandler(SINK, () => t.fail("the peer's program has no part in it"))
  let isDone = false
  for (const [number, size] of SIZES.entries()) {
    for (const [offset, into] of [
      [0, 0],
      [1, 7],
      [SEGMENT - size, 0],
      [0, SEGMENT - size],
    ] as const) {
      const bytes = patterned(size, number)
      b.segment.set(bytes, offset)
      a.setHandler(SINK, message => {
        t.match(message, { length: size, offset: into, isRequest: false, source: b.name, destination: 0 })
        t.ok(bytes.equals(message.payload()))
        t.strictSame(arrivalOf(message).words, eightWords(size, -1))
        isDone = true
      })
      await deliver(a, 0, () => a.get(0, SINK, offset, size, into, size, -1))
      await until(`a get of ${size} bytes`, () => isDone)
      isDone = false
      expectOnly(t, a.segment, into, bytes, `${size} bytes from ${offset} into ${into}`)
      expectOnly(t, b.segment, offset, bytes, 'where it came from')
    }
  }
})

testOver(LISTS, 'long replies of all sizes, both ways, over segments that both use', async (t, world) => {
  const [a, b] = await openSegments(world)
  const pairs = [
    [a, b],
    [b, a],
  ] as const
  let answered = 0
  for (const [number, size] of SIZES.entries()) {
    const offset = SEGMENT - size
    const payload = patterned(size, number)
    for (const [requester, replier] of pairs) {
      replier.setHandler(ECHO, message => message.replyLong(ANSWER, payload, message.word(0), size))
      requester.setHandler(ANSWER, message => {
        t.match(message, { length: size, offset, isRequest: false })
        t.ok(payload.equals(message.payload()))
        answered++
      })
    }
    for (const [requester] of pairs) await deliver(requester, 0, () => requester.request(0, ECHO, offset))
    await until(`replies of ${size} bytes`, () => answered === 2)
    answered = 0
    for (const [requester] of pairs) expectOnly(t, requester.segment, offset, payload, `${size} bytes`)
  }
})

testOver(LISTS, 'a long reply to one who is not mapped back', async (t, world) => {
  const a = await world.open({ segment: SEGMENT })
  const b = await world.open()
  await a.map(0, b.name)
  const payload = patterned(500_000, 1)
  b.setHandler(ECHO, message => message.replyLong(ANSWER, payload, 100))
  const arrivals = keepArrivals(a, ANSWER)
  await deliver(a, 0, () => a.request(0, ECHO))
  await until('the reply', () => arrivals.length === 1)
  t.ok(arrivals[0]?.payload.equals(payload))
  const call = a.call(0, ECHO)
  const reply = await call
  t.ok(reply.payload().equals(payload), 'a call takes a long reply, too')
})

testOver(LISTS, 'gets while long messages are under way both ways', async (t, world) => {
  const PIECE = 300_000
  const ROUNDS = 30
  const random = seededRandom(t)
  const [a, b] = await openSegments(world)
  // The first third is written by the peer, the second is read by it, into the last.
  const THIRD = 1 << 20
  const readable = patterned(THIRD, 99)
  let wrong = 0
  let longs = 0
  let gets = 0
  const check = (message: Message): void => {
    const expected = message.isRequest
      ? patterned(message.length, message.word(0))
      : readable.subarray(message.word(0), message.word(0) + message.length)
    if (!expected.equals(message.payload())) wrong++
    if (message.isRequest) longs++
    else gets++
  }
  for (const endpoint of [a, b]) {
    endpoint.segment.set(readable, THIRD)
    endpoint.setHandler(SINK, check)
    endpoint.setHandler(ANSWER, check)
  }
  const run = async (endpoint: Endpoint, side: number): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) {
      const number = round * 2 + side
      const payload = patterned(PIECE - number, number)
      // Three places in turn: what was sent to one has been handled before it is written again.
      const place = (round % 3) * PIECE
      await deliver(endpoint, 0, () => endpoint.requestLong(0, SINK, payload, place, number))
      for (let i = 0; i < 3; i++) {
        const from = random.within(0, THIRD - 100_000)
        const length = random.within(0, 100_000)
        const into = 2 * THIRD + i * 200_000
        await deliver(endpoint, 0, () => endpoint.get(0, ANSWER, THIRD + from, length, into, from))
      }
      await until('this round', () => gets >= (round + 1) * 3 && longs >= round - 1)
      await until('no more than one of the others', () => endpoint.stats().peers[0]?.outstanding === 0)
    }
  }
  await Promise.all([run(a, 0), run(b, 1)])
  await until('the rest', () => longs === 2 * ROUNDS && gets === 6 * ROUNDS)
  t.equal(wrong, 0)
})

testOver(
  COPYING_DRIVER_LISTS,
  'a long message that is more than the queue waits in a copy, and nothing overtakes it',
  async (t, world) => {
    const [a, b] = await world.openPair({ progress: 'manual' }, { progress: 'manual', segment: SEGMENT })
    const payload = patterned(SEGMENT, 1)
    const arrivals: Arrival[] = []
    b.setHandler(SINK, message => arrivals.push({ ...arrivalOf(message), payload: Buffer.alloc(0) }))
    t.equal(a.requestLong(0, SINK, payload, 0, 1), OK)
    payload.fill(0)
    t.equal(a.request(0, SINK, 2), NO_RESOURCE)
    t.equal(a.get(0, SINK, 0, 0, 0), NO_RESOURCE)
    t.equal(a.requestLong(0, SINK, Buffer.alloc(1), 0), NO_RESOURCE)
    let isReady = false
    void a.ready(0).then(() => {
      isReady = true
    })
    await until('the long message', () => {
      a.poll()
      b.poll()
      return arrivals.length === 1
    })
    t.ok(patterned(SEGMENT, 1).equals(b.segment))
    await until('readiness', () => {
      a.poll()
      return isReady
    })
    t.equal(a.request(0, SINK, 2), OK)
    await until('the next', () => {
      b.poll()
      return arrivals.length === 2
    })
  },
)

testOver(LISTS, 'with one credit, long messages, gets and long replies take turns', async (t, world) => {
  const [a, b] = await openSegments(world, 1)
  let done = 0
  for (const endpoint of [a, b]) {
    endpoint.setHandler(SINK, () => void done++)
    endpoint.setHandler(ECHO, message => message.replyLong(ANSWER, patterned(150_000, 1), 0))
    endpoint.setHandler(ANSWER, () => void done++)
  }
  const run = async (endpoint: Endpoint): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      await deliver(endpoint, 0, () => endpoint.requestLong(0, SINK, patterned(150_000, i), 1 << 20))
      await deliver(endpoint, 0, () => endpoint.get(0, ANSWER, 0, 150_000, 2 << 20))
      await deliver(endpoint, 0, () => endpoint.request(0, ECHO))
    }
  }
  await Promise.all([run(a), run(b)])
  await until('all of them', () => done === 120)
  t.ok([a, b].every(endpoint => endpoint.stats().handled >= 60))
})

testOver(LISTS, 'stats say why nothing is one-sided, if so', async (t, world) => {
  const [a] = await openSegments(world)
  const isCopying = COPYING_DRIVER_LISTS.includes(world.list)
  const [peer] = a.stats().peers
  if (isCopying) t.match(peer?.oneSidedReason, /the test says/)
  else t.comment(`one-sided: ${peer?.oneSidedReason ?? 'yes'}`)
})
