/** What cannot be delivered comes back to handler 0, whole, with the reason; calls reject with it. */
import type { Test } from 'tap'
import { type Endpoint, OK, type UndeliverableReason } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import {
  COPYING_DRIVER_LISTS,
  COPYING_PROCESS_DRIVER_LISTS,
  DRIVER_LISTS,
  PROCESS_DRIVER_LISTS,
} from '../support/driver-lists.ts'
import { type Arrival, arrivalOf, deliver, eightWords, errorOf, keepArrivals } from '../support/endpoints.ts'
import { patterned } from '../support/frames.ts'
import { until } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const SINK = 1
const ECHO = 2
const ANSWER = 3
const NOBODY = 99
const HERE = 5
const SEGMENT = 1 << 20
const WORDS = [7, -(2 ** 31), 2 ** 31 - 1]
const MEDIUM = patterned(777, 1)
const LONG = patterned(300, 2)
const LONGER = patterned(200_000, 3)

/** One message of each kind to the destination, and what of it must come back. */
interface Sent {
  readonly kind: string
  readonly payload: Buffer
  readonly length: number
  send(endpoint: Endpoint, handler: number): number
}

const KINDS: readonly Sent[] = [
  { kind: 'short', ...whole(Buffer.alloc(0)), send: (e, h) => e.request(HERE, h, ...WORDS) },
  { kind: 'medium', ...whole(MEDIUM), send: (e, h) => e.requestMedium(HERE, h, MEDIUM, ...WORDS) },
  { kind: 'long', ...whole(LONG), send: (e, h) => e.requestLong(HERE, h, LONG, 8, ...WORDS) },
  { kind: 'longer', ...whole(LONGER), send: (e, h) => e.requestLong(HERE, h, LONGER, 8, ...WORDS) },
]
const GET: Sent = {
  kind: 'get',
  ...whole(Buffer.alloc(0)),
  send: (e, h) => e.get(HERE, h, 8, 100, 16, ...WORDS),
}
const ALL = [...KINDS, GET]

function whole(payload: Buffer): { payload: Buffer; length: number } {
  return { payload, length: payload.length }
}

/** Sends each kind, and checks that it comes back as it was, once. */
async function expectReturns(
  t: Test,
  a: Endpoint,
  reason: UndeliverableReason,
  kinds: readonly Sent[],
  handler = SINK,
): Promise<void> {
  const returned = keepArrivals(a, 0)
  for (const { kind, payload, length, send } of kinds) {
    await deliver(a, HERE, () => send(a, handler))
    await until(`the return of a ${kind} message`, () => returned.length > 0)
    const [arrival] = returned.splice(0) as [Arrival]
    t.match(
      arrival,
      { reason, handler, destination: HERE, isRequest: false, words: eightWords(...WORDS) },
      kind,
    )
    t.equal(arrival.payload.length, length, kind)
    t.ok(arrival.payload.equals(payload), `the payload of the ${kind} one`)
  }
  await t.rejects(a.call(HERE, handler, MEDIUM), { code: 'ERR_AM_UNDELIVERABLE', reason }, 'a call')
  t.strictSame(returned, [], 'a call is not returned to handler 0')
  await until('all credits', () => a.stats().peers.every(({ outstanding }) => outstanding === 0))
}

testOver(
  [...DRIVER_LISTS, ...COPYING_DRIVER_LISTS],
  'BAD_TAG: each kind of message, at each kind of tag',
  async (t, world) => {
    for (const [own, shown] of [
      [5n, 0n],
      [0n, 5n],
      [5n, 6n],
      [2n ** 63n, 2n ** 63n + 2n ** 32n],
      [2n ** 64n - 1n, 2n ** 32n - 1n],
    ] as const) {
      const a = await world.open({ segment: SEGMENT })
      const b = await world.open({ segment: SEGMENT, tag: own })
      const arrivals = keepArrivals(b, SINK)
      await a.map(HERE, b.name, shown)
      await expectReturns(t, a, 'BAD_TAG', ALL)
      t.strictSame(arrivals, [])
      t.ok(
        b.segment.every(byte => byte === 0),
        'nothing was written',
      )
      await a.map(HERE, b.name, own)
      t.equal(a.request(HERE, SINK, 1), OK)
      await until('the message with the right tag', () => arrivals.length === 1)
    }
  },
)

testOver(
  [...DRIVER_LISTS, ...COPYING_DRIVER_LISTS],
  'NO_SUCH_HANDLER: each kind of message; a get for its own handler',
  async (t, world) => {
    const a = await world.open({ segment: SEGMENT })
    const b = await world.open({ segment: SEGMENT })
    await a.map(HERE, b.name)
    await expectReturns(t, a, 'NO_SUCH_HANDLER', ALL, NOBODY)
    b.setHandler(SINK, () => {})
    b.setHandler(SINK, undefined)
    await expectReturns(t, a, 'NO_SUCH_HANDLER', KINDS)
    b.setHandler(0, () => t.fail('handler 0 of the receiver is not for messages'))
  },
)

testOver(
  DRIVER_LISTS,
  'NO_SUCH_ENDPOINT: no endpoint answers to the name, or none does any more',
  async (t, world) => {
    const a = await world.open({ segment: SEGMENT })
    const b = await world.open({ segment: SEGMENT })
    const { name } = b
    const nobody = name.replace(/.$/, last => (last === '0' ? '1' : '0'))
    const noThread = name.replace(/-[0-9a-f]{32}-([0-9a-f]{16})$/, `-${'0'.repeat(32)}-$1`)
    await b.close()
    for (const missing of [name, nobody, noThread]) {
      await t.rejects(a.map(HERE, missing), { name: 'AmError', code: 'ERR_AM_NO_SUCH_ENDPOINT' })
      await expectReturns(t, a, 'NO_SUCH_ENDPOINT', ALL)
      await a.ready(HERE)
    }
  },
)

testOver(
  DRIVER_LISTS,
  'NO_SUCH_ENDPOINT: what is under way when the destination is mapped anew, or unmapped, comes back',
  async (t, world) => {
    const a = await world.open({ segment: SEGMENT })
    const b = await world.open({ segment: SEGMENT })
    const gone = await world.open()
    const { name } = gone
    await gone.close()
    const returned = keepArrivals(a, 0)
    await t.rejects(a.map(HERE, name), { code: 'ERR_AM_NO_SUCH_ENDPOINT' })
    for (const { send } of ALL) t.equal(send(a, SINK), OK)
    const call = errorOf(a.call(HERE, SINK))
    a.unmap(HERE)
    await until('all of them', () => returned.length === ALL.length)
    t.match(await call, { code: 'ERR_AM_UNDELIVERABLE', reason: 'NO_SUCH_ENDPOINT' })
    await t.rejects(a.map(HERE, name), { code: 'ERR_AM_NO_SUCH_ENDPOINT' })
    for (const { send } of ALL) t.equal(send(a, SINK), OK)
    await a.map(HERE, b.name)
    await until('all of them', () => returned.length === 2 * ALL.length)
    t.ok(returned.every(({ reason, destination }) => reason === 'NO_SUCH_ENDPOINT' && destination === HERE))
  },
)

testOver(
  [...DRIVER_LISTS, ...COPYING_DRIVER_LISTS],
  'OUT_OF_BOUNDS: a long message or a get that leaves the segment',
  async (t, world) => {
    const a = await world.open({ segment: SEGMENT })
    const b = await world.open({ segment: 1000 })
    keepArrivals(b, SINK)
    await a.map(HERE, b.name)
    const returned = keepArrivals(a, 0)
    const attempts: [what: string, payload: Buffer, send: () => number][] = [
      ['one byte too far', LONG, () => a.requestLong(HERE, SINK, LONG, 701, ...WORDS)],
      ['behind it', LONG, () => a.requestLong(HERE, SINK, LONG, 2 ** 32 - 1 - LONG.length, ...WORDS)],
      ['longer than it', LONGER, () => a.requestLong(HERE, SINK, LONGER, 0, ...WORDS)],
      [
        'nothing, but behind it',
        Buffer.alloc(0),
        () => a.requestLong(HERE, SINK, Buffer.alloc(0), 1001, ...WORDS),
      ],
      ['a get of one byte too much', Buffer.alloc(0), () => a.get(HERE, SINK, 900, 101, 0, ...WORDS)],
      ['a get from behind it', Buffer.alloc(0), () => a.get(HERE, SINK, 1001, 0, 0, ...WORDS)],
      ['a long get', Buffer.alloc(0), () => a.get(HERE, SINK, 0, 200_000, 0, ...WORDS)],
    ]
    for (const [what, payload, send] of attempts) {
      await deliver(a, HERE, send)
      await until(what, () => returned.length > 0)
      const [arrival] = returned.splice(0) as [Arrival]
      t.match(
        arrival,
        { reason: 'OUT_OF_BOUNDS', handler: SINK, destination: HERE, words: eightWords(...WORDS) },
        what,
      )
      t.ok(arrival.payload.equals(payload), what)
    }
    t.ok(
      b.segment.every(byte => byte === 0),
      'nothing was written',
    )
    const arrivals = keepArrivals(b, SINK)
    for (const offset of [0, 700, 1000]) {
      const payload = LONG.subarray(0, 1000 - offset)
      await deliver(a, HERE, () => a.requestLong(HERE, SINK, payload, offset, offset))
      await until('what fits', () => arrivals.length > 0)
      const [arrival] = arrivals.splice(0) as [Arrival]
      t.ok(arrival.payload.equals(payload))
      t.equal(arrival.offset, offset)
    }
    await until('all credits', () => a.stats().peers.every(({ outstanding }) => outstanding === 0))
  },
)

testOver(
  [...DRIVER_LISTS, ...COPYING_DRIVER_LISTS],
  'TOO_LONG: more than the receiver takes, of each kind with a payload',
  async (t, world) => {
    const a = await world.open({ segment: SEGMENT })
    const b = await world.open({ segment: SEGMENT, limits: { medium: 100, long: 200 } })
    keepArrivals(b, SINK)
    await a.map(HERE, b.name)
    await expectReturns(t, a, 'TOO_LONG', KINDS.slice(1))
    const longGet: Sent = { ...GET, kind: 'long get', send: (e, h) => e.get(HERE, h, 0, 201, 0, ...WORDS) }
    const returned = keepArrivals(a, 0)
    await deliver(a, HERE, () => longGet.send(a, SINK))
    await until('the get', () => returned.length === 1)
    t.equal(returned[0]?.reason, 'TOO_LONG')
    const arrivals = keepArrivals(b, SINK)
    await deliver(a, HERE, () => a.requestMedium(HERE, SINK, Buffer.alloc(100)))
    await deliver(a, HERE, () => a.requestLong(HERE, SINK, Buffer.alloc(200), 0))
    await until('what is not too long', () => arrivals.length === 2)
  },
)

testOver(
  DRIVER_LISTS,
  'PEER_CLOSED: what is under way when the peer closes, and what is sent to it afterwards',
  async (t, world) => {
    const a = await world.open({ segment: SEGMENT })
    const b = await world.open({ segment: SEGMENT, progress: 'manual' })
    let handled = 0
    b.setHandler(SINK, () => void handled++)
    await a.map(HERE, b.name)
    const returned = keepArrivals(a, 0)
    const sent = [...KINDS, GET]
    for (const { send } of sent) t.equal(send(a, SINK), OK)
    const call = errorOf(a.call(HERE, SINK))
    await b.close()
    // One-sided gets need no help from the peer: theirs may have been complete before.
    await until('all of them', () => returned.length >= KINDS.length)
    t.match(await call, { code: 'ERR_AM_UNDELIVERABLE', reason: 'PEER_CLOSED' })
    t.equal(handled, 0)
    for (const { kind, payload } of KINDS) {
      const arrival = returned.find(one => one.payload.equals(payload) && one.reason === 'PEER_CLOSED')
      t.match(arrival, { handler: SINK, destination: HERE, words: eightWords(...WORDS) }, kind)
    }
    await expectReturns(t, a, 'PEER_CLOSED', ALL)
  },
)

const fixture = new URL('./endpoint-child.js', import.meta.url)

testOver(
  [...PROCESS_DRIVER_LISTS, ...COPYING_PROCESS_DRIVER_LISTS],
  'PEER_DEAD: what is under way when the process dies, and what is sent to it afterwards',
  async (t, world) => {
    const child = new Child(t, fixture, [world.list.name])
    const { name } = await child.ask<{ name: string }>({ ask: 'open', options: { segment: SEGMENT } })
    const a = await world.open({ segment: SEGMENT })
    await a.map(HERE, name)
    const returned = keepArrivals(a, 0)
    // A one-sided get needs no help from the peer: it is complete at once.
    const sent = PROCESS_DRIVER_LISTS.includes(world.list) ? KINDS : ALL
    child.process.kill('SIGSTOP')
    for (const { send } of sent) t.equal(send(a, SINK), OK)
    const call = errorOf(a.call(HERE, SINK))
    await child.kill()
    await until('all of them', () => returned.length === sent.length)
    t.match(await call, { code: 'ERR_AM_UNDELIVERABLE', reason: 'PEER_DEAD' })
    for (const { kind, payload } of sent) {
      const arrival = returned.find(one => one.payload.equals(payload))
      t.match(
        arrival,
        { reason: 'PEER_DEAD', handler: SINK, destination: HERE, words: eightWords(...WORDS) },
        kind,
      )
    }
    await expectReturns(t, a, 'PEER_DEAD', ALL)
    await t.rejects(a.map(HERE + 1, name), { code: 'ERR_AM_NO_SUCH_ENDPOINT' })
  },
)

testOver(DRIVER_LISTS, 'a reply without a handler comes back to the replier, whole', async (t, world) => {
  const a = await world.open({ segment: 1000, limits: { medium: 700 } })
  const b = await world.open({ segment: SEGMENT })
  await a.map(HERE, b.name)
  await b.map(HERE + 1, a.name)
  keepArrivals(a, ANSWER)
  const returned = keepArrivals(b, 0)
  const cases: [
    reason: UndeliverableReason,
    payload: Buffer,
    reply: Parameters<Endpoint['setHandler']>[1],
  ][] = [
    ['NO_SUCH_HANDLER', Buffer.alloc(0), message => message.reply(NOBODY, ...WORDS)],
    ['NO_SUCH_HANDLER', LONG, message => message.replyMedium(NOBODY, LONG, ...WORDS)],
    ['NO_SUCH_HANDLER', LONG, message => message.replyLong(NOBODY, LONG, 0, ...WORDS)],
    ['TOO_LONG', MEDIUM, message => message.replyMedium(ANSWER, MEDIUM, ...WORDS)],
    ['OUT_OF_BOUNDS', LONG, message => message.replyLong(ANSWER, LONG, 701, ...WORDS)],
  ]
  for (const [reason, payload, reply] of cases) {
    b.setHandler(ECHO, reply)
    await deliver(a, HERE, () => a.request(HERE, ECHO))
    await until(reason, () => returned.length > 0)
    const [arrival] = returned.splice(0) as [Arrival]
    t.match(arrival, { reason, destination: HERE + 1, isRequest: false, words: eightWords(...WORDS) })
    t.ok(arrival.payload.equals(payload), reason)
  }
  t.match(a.stats().peers, [{ outstanding: 0, creditsLeft: 64 }], 'the requests are done with all the same')
})

testOver(
  DRIVER_LISTS,
  'without a handler 0, and with one that throws away, senders go on',
  async (t, world) => {
    const a = await world.open({ credits: 2 })
    const b = await world.open()
    await a.map(HERE, b.name)
    for (let i = 0; i < 20; i++) await deliver(a, HERE, () => a.requestMedium(HERE, NOBODY, MEDIUM, i))
    await until('all credits', () => a.stats().peers[0]?.outstanding === 0)
    t.equal(a.stats().peers[0]?.returned, 20)
  },
)

testOver(
  DRIVER_LISTS,
  'many messages that come back at once, in handlers that take their time',
  async (t, world) => {
    const a = await world.open({ credits: 64 })
    const b = await world.open({ progress: 'manual' })
    await a.map(HERE, b.name)
    const returned: number[] = []
    a.setHandler(0, message => {
      const arrival = arrivalOf(message)
      returned.push(arrival.words[0] as number)
      if (!arrival.payload.equals(patterned(100, arrival.words[0] as number))) t.fail('another payload')
    })
    for (let i = 0; i < 64; i++) t.equal(a.requestMedium(HERE, SINK, patterned(100, i), i), OK)
    t.not(a.request(HERE, SINK), OK, 'no credit is left')
    await b.close()
    await until('all of them', () => returned.length === 64)
    t.strictSame(
      returned.toSorted((x, y) => x - y),
      Array.from({ length: 64 }, (_, i) => i),
    )
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < 64; i++) t.equal(a.requestMedium(HERE, SINK, patterned(100, i), i), OK)
      t.not(a.request(HERE, SINK), OK, 'returned messages use credits as others do')
      await a.ready(HERE)
      await until('all of them', () => returned.length === 64 * (round + 2))
    }
  },
)
