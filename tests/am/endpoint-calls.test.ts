/** call(): a request and its reply as a promise. */
import type { Test } from 'tap'
import { type Endpoint, handleEach, OK, type ReceivedMessage } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { DRIVER_LISTS, SLOW_REASON } from '../support/driver-lists.ts'
import { arrivalOf, deliver, eightWords, errorOf, keepArrivals } from '../support/endpoints.ts'
import { patterned } from '../support/frames.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const fixture = new URL('./call-memory-child.js', import.meta.url)
const ECHO = 1
const SILENT = 2
const HELD = 3
const ANSWER = 4
const NOBODY = 99

function setEcho(endpoint: Endpoint): void {
  endpoint.setHandler(ECHO, message => {
    const { words } = arrivalOf(message)
    if (message.length === 0) message.reply(ANSWER, ...words)
    else message.replyMedium(ANSWER, message.payload(), ...words)
  })
}

/** Errors without a handler while the test runs. */
function watchRejections(t: Test): unknown[] {
  const unhandled: unknown[] = []
  const note = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', note)
  t.teardown(() => void process.off('unhandledRejection', note))
  return unhandled
}

testOver(DRIVER_LISTS, 'a call resolves with its reply: words, payload, who sent it', async (t, world) => {
  const [a, b] = await world.openPair()
  setEcho(b)
  a.setHandler(ANSWER, () => t.fail('the reply to a call goes to its caller'))
  const short = await a.call(0, ECHO)
  t.match(short, {
    source: b.name,
    destination: 0,
    handler: ANSWER,
    isRequest: false,
    length: 0,
    reason: undefined,
  })
  t.strictSame(short.words, eightWords())
  const words = [1, -1, 2 ** 31 - 1, -(2 ** 31), 5, 6, 7, 8]
  const payload = patterned(50_000, 1)
  const medium = await a.call(0, ECHO, payload, words)
  t.strictSame(medium.words, words)
  t.ok(payload.equals(medium.payload()))
  t.ok(payload.equals(medium.copy()))
  t.throws(() => medium.reply(ANSWER), { code: 'ERR_AM_TOKEN' })
  t.strictSame((await a.call(0, ECHO, Buffer.alloc(0), [4])).words, eightWords(4))
})

testOver(DRIVER_LISTS, 'each way in which a call can fail has its code', async (t, world) => {
  const unhandled = watchRejections(t)
  const [a, b] = await world.openPair()
  b.setHandler(SILENT, () => {})
  b.setHandler(HELD, message => void message.defer())
  await t.rejects(a.call(0, SILENT), { name: 'AmError', code: 'ERR_AM_NO_REPLY' })
  await t.rejects(a.call(0, NOBODY), {
    name: 'AmError',
    code: 'ERR_AM_UNDELIVERABLE',
    reason: 'NO_SUCH_HANDLER',
  })
  await t.rejects(a.call(0, HELD, undefined, [], { timeoutMs: 10 }), {
    name: 'AmError',
    code: 'ERR_AM_TIMEOUT',
  })
  await t.rejects(a.call(0, HELD, undefined, [], { timeoutMs: 0 }), {
    name: 'AmError',
    code: 'ERR_AM_TIMEOUT',
  })
  const aborted = a.call(0, HELD, undefined, [], { signal: AbortSignal.timeout(10) })
  await t.rejects(aborted, { name: 'TimeoutError' })
  const controller = new AbortController()
  const byHand = a.call(0, HELD, undefined, [], { signal: controller.signal, timeoutMs: 20_000 })
  controller.abort(new Error('by hand'))
  await t.rejects(byHand, { message: 'by hand' })
  const closed = a.call(0, HELD)
  const error = errorOf(closed)
  await a.close()
  t.match(await error, { name: 'AmError', code: 'ERR_AM_CLOSED' })
  t.strictSame(unhandled, [])
})

testOver(DRIVER_LISTS, 'a call that is aborted before it begins sends nothing', async (t, world) => {
  const unhandled = watchRejections(t)
  const [a, b] = await world.openPair()
  const arrivals = keepArrivals(b, SILENT)
  const signal = AbortSignal.abort(new Error('before'))
  for (let i = 0; i < 100; i++) {
    await t.rejects(a.call(0, SILENT, undefined, [i], { signal }), { message: 'before' })
  }
  t.equal(a.stats().peers[0]?.requests, 0)
  t.equal(a.request(0, SILENT, 5), OK)
  await until('the message', () => arrivals.length > 0)
  t.strictSame(
    arrivals.map(({ words }) => words[0]),
    [5],
  )
  t.strictSame(unhandled, [])
})

testOver(DRIVER_LISTS, 'a call that is over while it waits for credit is never sent', async (t, world) => {
  const unhandled = watchRejections(t)
  const [a, b] = await world.openPair({ credits: 2 }, { credits: 2, progress: 'manual' })
  const arrivals = keepArrivals(b, SILENT)
  for (const i of [1, 2]) t.equal(a.request(0, SILENT, i), OK)
  const timed: Promise<unknown>[] = []
  const aborted: Promise<unknown>[] = []
  for (let i = 0; i < 20; i++) {
    timed.push(errorOf(a.call(0, SILENT, undefined, [100], { timeoutMs: 5 + i })))
    aborted.push(errorOf(a.call(0, SILENT, undefined, [100], { signal: AbortSignal.timeout(5 + i) })))
  }
  for (const error of await Promise.all(timed)) t.match(error, { code: 'ERR_AM_TIMEOUT' })
  for (const error of await Promise.all(aborted)) t.match(error, { name: 'TimeoutError' })
  await until('all credits', () => {
    b.poll()
    return a.stats().peers[0]?.creditsLeft === 2
  })
  t.equal(a.request(0, SILENT, 3), OK)
  await until('the last', () => {
    b.poll()
    return arrivals.length >= 3
  })
  t.strictSame(
    arrivals.map(({ words }) => words[0]),
    [1, 2, 3],
  )
  t.strictSame(unhandled, [])
})

testOver(
  DRIVER_LISTS,
  "the payload of a call is the caller's again at once, also when it has to wait",
  async (t, world) => {
    const [a, b] = await world.openPair({ credits: 2 }, { credits: 2 })
    setEcho(b)
    const scratch = Buffer.alloc(5000)
    const words = [0]
    const calls: Promise<{ payload(): Buffer }>[] = []
    for (let i = 0; i < 50; i++) {
      patterned(5000, i).copy(scratch)
      words[0] = i
      calls.push(a.call(0, ECHO, scratch, words))
      scratch.fill(0)
      words[0] = -1
    }
    const replies = await withWatchdog('all replies', Promise.all(calls))
    t.ok(replies.every((reply, i) => reply.payload().equals(patterned(5000, i))))
  },
)

testOver(
  DRIVER_LISTS,
  'thousands of calls at once, both ways, with few credits and with many',
  async (t, world) => {
    for (const credits of [1, 64]) {
      const COUNT = SLOW_REASON ? 250 : credits === 1 ? 1000 : 10_000
      const [a, b] = await world.openPair({ credits }, { credits })
      for (const endpoint of [a, b]) setEcho(endpoint)
      const callAll = async (endpoint: Endpoint): Promise<boolean> => {
        const calls = Array.from({ length: COUNT }, (_, i) => endpoint.call(0, ECHO, undefined, [i]))
        const replies = await Promise.all(calls)
        return replies.every((reply, i) => reply.word(0) === i)
      }
      t.strictSame(await withWatchdog('all replies', Promise.all([callAll(a), callAll(b)])), [true, true])
      t.equal(a.stats().peers[0]?.outstanding, 0)
    }
  },
)

/** What calls leave behind is in the call table, whatever the driver: one that hands frames over at once, and one that does not. */
const CALL_TABLE_LISTS = DRIVER_LISTS.filter(({ name }) => name === 'loopback' || name === 'tcp')

for (const mode of ['answered', 'timed out'] as const) {
  testOver(
    CALL_TABLE_LISTS,
    `ten thousand calls with one signal and a time-out leave nothing behind: ${mode}`,
    async (t, world) => {
      const child = new Child(t, fixture, [world.list.name, mode])
      const report = await child.receive<{
        growth: number
        answered: number
        count: number
        warnings: string[]
      }>()
      t.ok(report.growth < 2_000_000, `${report.growth} bytes more after ${report.count} calls`)
      t.equal(report.answered, mode === 'answered' ? report.count : 0)
      t.strictSame(report.warnings, [])
      t.equal((await child.end()).code, 0)
    },
    SLOW_REASON,
  )
}

testOver(DRIVER_LISTS, 'a late reply to a call that is over goes nowhere', async (t, world) => {
  const [a, b] = await world.openPair()
  setEcho(b)
  a.setHandler(ANSWER, () => t.fail('a late reply is no message'))
  for (const endpoint of [a, b]) endpoint.setHandler(0, () => t.fail('nothing comes back'))
  let isOver = false
  let isReplied = false
  const replyLate = async (message: ReceivedMessage): Promise<void> => {
    await until('the call to be over', () => isOver)
    message.reply(ANSWER, 1)
    isReplied = true
  }
  b.messages(HELD).pipe(handleEach(replyLate, Number.POSITIVE_INFINITY)).subscribe()
  await t.rejects(a.call(0, HELD, undefined, [], { timeoutMs: 20 }), { code: 'ERR_AM_TIMEOUT' })
  isOver = true
  await until('the late reply', () => isReplied)
  t.equal((await a.call(0, ECHO, undefined, [2])).word(0), 2)
  await until('all credits', () => a.stats().peers[0]?.outstanding === 0)
})

testOver(DRIVER_LISTS, 'calls that wait for credit say so if their destination is gone', async (t, world) => {
  const [a, b] = await world.openPair({ credits: 1 }, { credits: 1, progress: 'manual' })
  const c = await world.open()
  setEcho(c)
  t.equal(a.request(0, SILENT), OK)
  const lost = [1, 2].map(() => errorOf(a.call(0, ECHO)))
  a.unmap(0)
  await until('the credit', () => {
    b.poll()
    return a.stats().peers.length === 0 || a.stats().peers[0]?.creditsLeft === 1
  })
  for (const error of await Promise.all(lost)) t.match(error, { code: 'ERR_AM_NOT_MAPPED' })
  await a.map(0, c.name)
  t.equal((await a.call(0, ECHO, undefined, [8])).word(0), 8)
})

for (const next of ['unmapped', 'mapped to another'] as const) {
  testOver(
    DRIVER_LISTS,
    `who waits for credit when the destination is ${next}, and its connection ends, looks where it leads`,
    async (t, world) => {
      const [a, b, c] = [
        await world.open({ credits: 1 }),
        await world.open({ credits: 1, progress: 'manual' }),
        await world.open(),
      ]
      for (const endpoint of [b, c]) setEcho(endpoint)
      await a.map(0, b.name)
      const underWay = errorOf(a.call(0, ECHO, undefined, [1]))
      const waiting = [errorOf(a.call(0, ECHO, undefined, [2])), errorOf(a.ready(0))]
      if (next === 'unmapped') a.unmap(0)
      else await a.map(0, c.name)
      await until('the end of the connection', () => {
        b.poll()
        return a.stats().peers.every(({ name }) => name !== b.name)
      })
      t.match(await withWatchdog('the reply', underWay), { resolved: { source: b.name } })
      const [called, ready] = await withWatchdog('those who wait', Promise.all(waiting))
      const isGone = { code: 'ERR_AM_NOT_MAPPED' }
      t.match(called, next === 'unmapped' ? isGone : { resolved: { source: c.name } })
      t.match(ready, next === 'unmapped' ? isGone : { resolved: undefined })
    },
  )
}

testOver(
  DRIVER_LISTS,
  'a call may ask for a reply from a stream, from a loop, and from itself',
  async (t, world) => {
    const [a, b] = await world.openPair()
    b.messages(HELD).subscribe(message => void message.reply(ANSWER, message.word(0) + 1))
    t.equal((await a.call(0, HELD, undefined, [1])).word(0), 2)
    await a.map(9, a.name)
    setEcho(a)
    t.equal((await a.call(9, ECHO, undefined, [3])).word(0), 3)
    const loop = (async () => {
      for await (const message of b.messages(SILENT)) return message.replyMedium(ANSWER, message.bytes, 5)
    })()
    const reply = await a.call(0, SILENT, Buffer.from('abc'))
    await loop
    t.strictSame([reply.words[0], String(reply.bytes)], [5, 'abc'])
    await deliver(a, 0, () => a.request(0, NOBODY))
  },
)
