/** Short, medium and long messages and gets arrive whole: words, payloads, offsets, and the name of the sender. */
import t from 'tap'
import { type Endpoint, LONG_MAX_DEFAULT, MEDIUM_MAX, type Message, OK } from '../../am/index.ts'
import { DRIVER_LISTS, SLOW_REASON } from '../support/driver-lists.ts'
import { type Arrival, arrivalOf, deliver, eightWords, keepArrivals } from '../support/endpoints.ts'
import { patterned } from '../support/frames.ts'
import { seededRandom } from '../support/random.ts'
import { until } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const SINK = 1
const ECHO = 2
const ANSWER = 3
const SEGMENT = 1 << 20
const EXTREMES = [0, -1, 1, 2 ** 31 - 1, -(2 ** 31), 0x55555555, -0x55555556, 255]
/** Around the sizes of words and buffers, and the limit of what travels in a frame. */
const SIZES = [
  0,
  1,
  3,
  4,
  7,
  8,
  9,
  15,
  16,
  17,
  95,
  96,
  97,
  255,
  256,
  257,
  4095,
  4096,
  4097,
  MEDIUM_MAX - 1,
  MEDIUM_MAX,
]

type Send = (endpoint: Endpoint, words: readonly number[]) => number

const KINDS: readonly (readonly [kind: string, send: Send])[] = [
  ['short', (e, words) => e.request(0, SINK, ...words)],
  ['medium', (e, words) => e.requestMedium(0, SINK, patterned(20, 1), ...words)],
  ['long', (e, words) => e.requestLong(0, SINK, patterned(20, 1), 100, ...words)],
]

testOver(DRIVER_LISTS, 'a message of each kind carries 0 to 8 words, to the extremes', async (t, world) => {
  const [a, b] = await world.openPair({}, { segment: SEGMENT })
  for (const [kind, send] of KINDS) {
    const arrivals = keepArrivals(b, SINK)
    for (let count = 0; count <= 8; count++) {
      await deliver(a, 0, () => send(a, EXTREMES.slice(8 - count)))
    }
    await until(`nine ${kind} messages`, () => arrivals.length === 9)
    const expected = Array.from({ length: 9 }, (_, count) => eightWords(...EXTREMES.slice(8 - count)))
    t.strictSame(sorted(arrivals.map(({ words }) => words)), sorted(expected), kind)
    t.ok(arrivals.every(({ isRequest, handler }) => isRequest && handler === SINK))
    t.ok(arrivals.every(({ source, destination }) => source === a.name && destination === 0))
    t.ok(
      arrivals.every(({ payload }) => payload.equals(kind === 'short' ? Buffer.alloc(0) : patterned(20, 1))),
    )
  }
})

testOver(DRIVER_LISTS, 'a get, and replies of each kind, carry 0 to 8 words', async (t, world) => {
  const [a, b] = await world.openPair({ segment: SEGMENT }, { segment: SEGMENT })
  b.segment.set(patterned(20, 2), 50)
  const replies: readonly ((message: Message, words: readonly number[]) => void)[] = [
    (message, words) => message.reply(ANSWER, ...words),
    (message, words) => message.replyMedium(ANSWER, patterned(20, 2), ...words),
    (message, words) => message.replyLong(ANSWER, patterned(20, 2), 70, ...words),
  ]
  b.setHandler(ECHO, message => {
    const words = EXTREMES.slice(8 - message.word(1))
    replies[message.word(0)]?.(message, words)
  })
  const expected = Array.from({ length: 9 }, (_, count) => eightWords(...EXTREMES.slice(8 - count)))
  for (const [i, kind] of ['short', 'medium', 'long', 'get'].entries()) {
    const arrivals = keepArrivals(a, ANSWER)
    for (let count = 0; count <= 8; count++) {
      const words = EXTREMES.slice(8 - count)
      await deliver(a, 0, () =>
        kind === 'get' ? a.get(0, ANSWER, 50, 20, 70, ...words) : a.request(0, ECHO, i, count),
      )
    }
    await until(`nine answers, ${kind}`, () => arrivals.length === 9)
    t.strictSame(sorted(arrivals.map(({ words }) => words)), sorted(expected), kind)
    t.ok(arrivals.every(({ isRequest, source }) => !isRequest && source === b.name))
    t.ok(
      arrivals.every(({ payload }) => payload.equals(kind === 'short' ? Buffer.alloc(0) : patterned(20, 2))),
    )
    t.ok(arrivals.every(({ offset }) => kind === 'short' || kind === 'medium' || offset === 70))
  }
})

testOver(
  DRIVER_LISTS,
  'payloads of all sizes arrive, and what the sender does to them later does not matter',
  async (t, world) => {
    const [a, b] = await world.openPair({ segment: SEGMENT }, { segment: SEGMENT })
    const scratch = Buffer.alloc(MEDIUM_MAX)
    let wrong = 0
    let count = 0
    const check = (message: Message): void => {
      count++
      const expected = patterned(message.word(1), message.word(0))
      if (message.length !== expected.length || !expected.equals(message.payload())) wrong++
      if (!expected.equals(message.bytes.subarray(message.offset, message.offset + message.length))) wrong++
    }
    b.setHandler(SINK, check)
    b.setHandler(ECHO, message => {
      check(message)
      message.replyMedium(ANSWER, message.payload(), message.word(0), message.word(1))
    })
    a.setHandler(ANSWER, check)
    for (const [number, size] of SIZES.entries()) {
      for (const handler of [SINK, ECHO]) {
        await deliver(a, 0, () => {
          patterned(size, number).copy(scratch)
          const status = a.requestMedium(0, handler, scratch.subarray(0, size), number, size)
          scratch.fill(0xee)
          return status
        })
      }
    }
    await until('all of them', () => count === 3 * SIZES.length)
    t.equal(wrong, 0)
  },
)

testOver(
  DRIVER_LISTS,
  'a payload may be any Uint8Array: a piece of another, shared, or the own segment',
  async (t, world) => {
    const [a, b] = await world.openPair({ segment: SEGMENT }, { segment: SEGMENT })
    const arrivals = keepArrivals(b, SINK)
    const whole = new Uint8Array(200_000).map((_, i) => i * 7)
    const shared = new Uint8Array(new SharedArrayBuffer(150_000)).fill(9)
    const payloads = [
      whole.subarray(3, 50),
      whole.subarray(1),
      shared.subarray(5, 60),
      shared,
      a.segment.fill(3).subarray(11, 100_000),
    ]
    for (const [i, payload] of payloads.entries()) {
      if (payload.length < MEDIUM_MAX) await deliver(a, 0, () => a.requestMedium(0, SINK, payload, i))
      await deliver(a, 0, () => a.requestLong(0, SINK, payload, i * 200_000, i))
    }
    await until('all of them', () => arrivals.length === 7)
    for (const { words, payload } of arrivals)
      t.ok(payload.equals(payloads[words[0] as number] as Uint8Array))
  },
)

testOver(DRIVER_LISTS, 'a handler may replace itself, set others and take itself away', async (t, world) => {
  const [a, b] = await world.openPair()
  const seen: string[] = []
  const settled = (what: string, count: number): Promise<boolean> => until(what, () => seen.length === count)
  b.setHandler(SINK, () => {
    seen.push('first')
    b.setHandler(SINK, () => {
      seen.push('second')
      b.setHandler(SINK, undefined)
      b.setHandler(ECHO, message => {
        seen.push('echo')
        message.reply(ANSWER)
      })
    })
  })
  a.setHandler(0, message => seen.push(`returned ${message.reason}`))
  a.setHandler(ANSWER, () => {
    seen.push('answer')
    a.setHandler(ANSWER, () => seen.push('another answer'))
  })
  for (const [i, handler] of [SINK, SINK, SINK, ECHO, ECHO].entries()) {
    t.equal(a.request(0, handler), OK)
    await settled(`the effect of message ${i}`, [1, 2, 3, 5, 7][i] as number)
  }
  t.strictSame(seen, [
    'first',
    'second',
    'returned NO_SUCH_HANDLER',
    'echo',
    'answer',
    'echo',
    'another answer',
  ])
})

testOver(DRIVER_LISTS, 'all 255 handlers take their own messages', async (t, world) => {
  const [a, b] = await world.openPair()
  const seen = new Map<number, number>()
  for (let index = 1; index <= 255; index++) {
    b.setHandler(index, message => seen.set(index, message.handler === index ? message.word(0) : -1))
  }
  for (let index = 1; index <= 255; index++) await deliver(a, 0, () => a.request(0, index, index * 3))
  await until('all of them', () => seen.size === 255)
  t.ok([...seen].every(([index, word]) => word === index * 3))
})

testOver(DRIVER_LISTS, 'random messages both ways arrive exactly once and intact', async (t, world) => {
  const COUNT = SLOW_REASON ? 1000 : 4000
  const random = seededRandom(t)
  const [a, b] = await world.openPair({ segment: SEGMENT }, { segment: SEGMENT })
  const seen = [new Uint8Array(COUNT), new Uint8Array(COUNT)] as const
  let wrong = 0
  for (const [side, endpoint] of [a, b].entries()) {
    const counts = seen[side] as Uint8Array
    endpoint.setHandler(SINK, message => {
      const number = message.word(0)
      counts[number] = (counts[number] as number) + 1
      if (!patterned(message.word(1), number).equals(message.payload())) wrong++
      if (number % 3 === 0) message.reply(ANSWER)
      if (number % 3 === 1) message.replyMedium(ANSWER, message.payload())
    })
    endpoint.setHandler(ANSWER, () => {})
  }
  const flood = async (endpoint: Endpoint): Promise<void> => {
    for (let number = 0; number < COUNT; number++) {
      const size = random.chance(0.02) ? random.within(0, MEDIUM_MAX) : random.within(0, 300)
      const payload = patterned(size, number)
      const isLong = random.chance(0.2)
      await deliver(endpoint, 0, () =>
        isLong
          ? endpoint.requestLong(0, SINK, payload, 0, number, size)
          : endpoint.requestMedium(0, SINK, payload, number, size),
      )
      // The next long message writes over this one: its handler must have run before.
      if (isLong)
        await until('the long message', () => (seen[endpoint === a ? 1 : 0] as Uint8Array)[number] === 1)
    }
  }
  await Promise.all([flood(a), flood(b)])
  await until('the last of them', () => seen.every(one => one.every(count => count > 0)))
  t.ok(seen.every(one => one.every(count => count === 1)))
  t.equal(wrong, 0)
})

testOver(DRIVER_LISTS, 'limits say what may be sent, and 4 MiB is one long message', async (t, world) => {
  const [a, b] = await world.openPair({ limits: { medium: 100 } }, { segment: LONG_MAX_DEFAULT })
  const arrivals: Arrival[] = []
  b.setHandler(SINK, message => arrivals.push({ ...arrivalOf(message), payload: Buffer.alloc(0) }))
  t.throws(() => a.requestMedium(0, SINK, Buffer.alloc(101)), { code: 'ERR_AM_ARGUMENT' })
  await deliver(a, 0, () => a.requestMedium(0, SINK, Buffer.alloc(100)))
  const whole = patterned(LONG_MAX_DEFAULT, 5)
  await deliver(a, 0, () => a.requestLong(0, SINK, whole, 0, 1))
  await until('both', () => arrivals.length === 2)
  t.ok(whole.equals(b.segment))
})

t.test('endpoints that are given no drivers use one that works', async t => {
  const { openEndpoint } = await import('../../am/index.ts')
  const [a, b] = [await openEndpoint(), await openEndpoint()]
  const arrivals = keepArrivals(b, SINK)
  await a.map(0, b.name)
  t.equal(a.request(0, SINK, 5), OK)
  await until('the message', () => arrivals.length === 1)
  t.equal((arrivals[0] as Arrival).destination, undefined, 'its receiver has not mapped the sender')
  await Promise.all([a.close(), b.close()])
})

function sorted(lists: readonly (readonly number[])[]): string[] {
  return lists.map(String).sort()
}
