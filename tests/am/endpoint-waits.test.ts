/** ready() and wait(), and progress by hand. */
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { NO_CREDIT, OK } from '../../am/index.ts'
import { DRIVER_LISTS, RELIABLE_DRIVER_LISTS } from '../support/driver-lists.ts'
import { errorOf, keepArrivals, pollUntil } from '../support/endpoints.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const SINK = 1
const ECHO = 2
const ANSWER = 3
const MANUAL = { progress: 'manual' } as const

/** Whether it has settled after a few turns of the event loop. */
async function isPending(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false
  const settle = (): void => {
    isSettled = true
  }
  promise.then(settle, settle)
  for (let i = 0; i < 50; i++) await nextTurn()
  return !isSettled
}

testOver(
  DRIVER_LISTS,
  'ready() resolves at once if nothing was refused, else when a credit is back',
  async (t, world) => {
    const [a, b] = await world.openPair({ credits: 2 }, { credits: 2, ...MANUAL })
    b.setHandler(SINK, () => {})
    await a.ready(0)
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 2; i++) t.equal(a.request(0, SINK), OK)
      t.equal(a.request(0, SINK), NO_CREDIT)
      const ready = a.ready(0)
      if (round === 0) t.ok(await isPending(ready))
      await pollUntil('the credits', [b], () => a.stats().peers[0]?.creditsLeft === 2)
      await withWatchdog('readiness', ready)
    }
    t.match(a.stats().peers, [{ refusedForCredit: 20, requests: 40 }])
  },
)

testOver(DRIVER_LISTS, 'ready() can be aborted, before and while it waits', async (t, world) => {
  const [a] = await world.openPair({ credits: 1 }, { credits: 1, ...MANUAL })
  t.equal(a.request(0, SINK), OK)
  const reason = new Error('aborted')
  await t.rejects(a.ready(0, { signal: AbortSignal.abort(reason) }), reason)
  const controller = new AbortController()
  const waits = Array.from({ length: 20 }, () => errorOf(a.ready(0, { signal: controller.signal })))
  controller.abort(reason)
  t.ok((await Promise.all(waits)).every(error => error === reason))
})

testOver(DRIVER_LISTS, 'of many who wait, all have their turn', async (t, world) => {
  const [a, b] = await world.openPair({ credits: 1 }, { credits: 1 })
  const arrivals = keepArrivals(b, SINK)
  const send = async (number: number): Promise<void> => {
    while (a.request(0, SINK, number) !== OK) await a.ready(0)
  }
  await withWatchdog('all of them', Promise.all(Array.from({ length: 500 }, (_, i) => send(i))))
  await until('the last', () => arrivals.length === 500)
  t.equal(new Set(arrivals.map(({ words }) => words[0])).size, 500)
})

testOver(
  DRIVER_LISTS,
  'a waiter that may send, and does not, keeps no other waiter waiting',
  async (t, world) => {
    const [a, b] = await world.openPair({ credits: 1 }, { credits: 1, ...MANUAL })
    b.setHandler(SINK, () => {})
    t.equal(a.request(0, SINK), OK)
    const waits = Array.from({ length: 100 }, () => a.ready(0))
    await pollUntil('the credit', [b], () => a.stats().peers[0]?.creditsLeft === 1)
    await withWatchdog('all of them', Promise.all(waits))
    t.equal(a.request(0, SINK), OK)
  },
)

testOver(
  DRIVER_LISTS,
  'a waiter for readiness learns of the close, of the unmapping and of the death of the mapping',
  async (t, world) => {
    const [a, b] = await world.openPair({ credits: 1 }, { credits: 1, ...MANUAL })
    t.equal(a.request(0, SINK), OK)
    const unmapped = errorOf(a.ready(0))
    a.unmap(0)
    await b.close()
    await withWatchdog('the end of the wait for what was unmapped', unmapped)
    const [c] = await world.openPair({ credits: 1 }, { credits: 1, ...MANUAL })
    t.equal(c.request(0, SINK), OK)
    const closed = errorOf(c.ready(0))
    await c.close()
    t.match(await closed, { name: 'TypeError', code: 'ERR_AM_CLOSED' })
  },
)

testOver(DRIVER_LISTS, 'wait() of an event-loop endpoint: a message, a time, an abort', async (t, world) => {
  const [a, b] = await world.openPair()
  const arrivals = keepArrivals(b, SINK)
  const waiting = (async () => {
    while (arrivals.length === 0) await b.wait()
  })()
  t.equal(a.request(0, SINK), OK)
  await withWatchdog('a message', waiting)
  await withWatchdog('the end of time', b.wait({ timeoutMs: 5 }))
  await withWatchdog('no time at all', b.wait({ timeoutMs: 0 }))
  const reason = new Error('aborted')
  await t.rejects(b.wait({ signal: AbortSignal.abort(reason) }), reason)
})

testOver(
  DRIVER_LISTS,
  'a wait that begins within a handler hides the end of the handler from no earlier waiter',
  async (t, world) => {
    const [a, b] = await world.openPair()
    const later: Promise<void>[] = []
    b.setHandler(SINK, () => void later.push(b.wait()))
    for (let round = 0; round < 3; round++) {
      const earlier = [b.wait(), b.wait()]
      t.equal(a.request(0, SINK), OK)
      await withWatchdog('the handler', Promise.all(earlier))
      t.equal(later.length, round + 1)
    }
    b.setHandler(SINK, () => {})
    t.equal(a.request(0, SINK), OK)
    await withWatchdog('another handler', Promise.all(later))
  },
)

testOver(
  DRIVER_LISTS,
  'wait() with manual progress: a message, a time, an abort, a new peer, the close',
  async (t, world) => {
    const [a, b] = await world.openPair({}, MANUAL)
    const arrivals = keepArrivals(b, SINK)
    await pollUntil('quiet', [b], () => true)
    for (let round = 0; round < 20; round++) {
      const waits = [b.wait(), b.wait({ timeoutMs: 60_000 })]
      if (round % 2 === 0) await sleep(1)
      t.equal(a.request(0, SINK, round), OK)
      await withWatchdog('a message', Promise.all(waits))
      t.equal(arrivals.length, round, 'no handler runs by itself')
      await pollUntil('it', [b], () => arrivals.length === round + 1)
    }
    await pollUntil('quiet', [a, b], () => a.stats().peers[0]?.outstanding === 0)

    const beganMs = performance.now()
    await withWatchdog('the end of time', b.wait({ timeoutMs: 30 }))
    t.ok(performance.now() - beganMs >= 25, 'it was waited for')
    const controller = new AbortController()
    const aborted = errorOf(b.wait({ signal: controller.signal }))
    const reason = new Error('aborted')
    controller.abort(reason)
    t.equal(await aborted, reason)

    const joined = b.wait()
    const c = await world.open()
    await c.map(0, b.name)
    t.equal(c.request(0, SINK, 100), OK)
    await withWatchdog(
      'a message of a new peer',
      (async () => {
        await joined
        while (b.poll() === 0) await b.wait()
      })(),
    )
    t.equal(arrivals.at(-1)?.words[0], 100)

    const closing = b.wait()
    await b.close()
    await withWatchdog('the close', closing)
  },
)

testOver(
  DRIVER_LISTS,
  'a server that polls and waits by hand: every request is answered, and timers have their turns',
  async (t, world) => {
    const [a, b] = await world.openPair({}, MANUAL)
    b.setHandler(ECHO, message => message.reply(ANSWER, message.word(0)))
    let isOver = false
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    const serving = (async () => {
      while (!isOver) {
        b.poll()
        await b.wait({ timeoutMs: 1000 })
      }
    })()
    for (let i = 0; i < 300; i++) {
      const replies = await Promise.all([1, 2, 3].map(number => a.call(0, ECHO, undefined, [i * number])))
      if (!replies.every((reply, k) => reply.word(0) === i * (k + 1))) t.fail('another reply')
      if (i % 50 === 0) await sleep(2)
    }
    isOver = true
    clearInterval(timer)
    t.ok(turns > 0)
    t.equal(a.request(0, ECHO), OK, 'and it is woken once more')
    await withWatchdog('the server', serving)
  },
)

testOver(
  DRIVER_LISTS,
  'manual progress: no handler runs but within poll(), which says how many',
  async (t, world) => {
    const [a, b] = await world.openPair(MANUAL, MANUAL)
    let isPolling = false
    const strays: string[] = []
    const ran: string[] = []
    const note = (what: string) => (): void => void (isPolling ? ran : strays).push(what)
    const poll = (limit?: number): number => {
      isPolling = true
      try {
        return a.poll(limit) + b.poll(limit)
      } finally {
        isPolling = false
      }
    }
    a.setHandler(ANSWER, note('reply'))
    a.setHandler(0, note('returned'))
    b.setHandler(SINK, note('request'))
    b.setHandler(ECHO, message => {
      note('echo')()
      message.reply(ANSWER)
    })
    for (let i = 0; i < 10; i++) {
      for (const handler of [SINK, ECHO, 99]) t.equal(a.request(0, handler), OK)
    }
    const call = a.call(0, ECHO)
    for (let i = 0; i < 100; i++) await nextTurn()
    t.strictSame(ran, [])
    let polled = 0
    await until('everything', () => {
      polled += poll()
      return ran.length === 41
    })
    await call
    t.equal(polled, 42, 'messages handled; the reply to the call is one of them')
    for (const what of ['reply', 'returned', 'request']) t.equal(ran.filter(one => one === what).length, 10)
    t.equal(poll(), 0)

    for (let i = 0; i < 20; i++) t.equal(a.request(0, SINK), OK)
    await until('the first of them', () => poll(1) === 1)
    t.equal(ran.length, 42, 'no more than was asked for')
    t.strictSame(strays, [])
  },
)

testOver(
  RELIABLE_DRIVER_LISTS,
  'close() with manual progress: nothing runs, what was sent is delivered, the rest comes back',
  async (t, world) => {
    const [a, b] = await world.openPair(MANUAL, MANUAL)
    let isPolling = false
    const ran: string[] = []
    const note = (what: string): void => void ran.push(isPolling ? what : `${what}, by itself`)
    b.setHandler(ECHO, message => {
      note('request')
      message.replyMedium(ANSWER, new Uint8Array(60_000))
    })
    a.setHandler(ECHO, () => note('a request to one who closes'))
    a.setHandler(ANSWER, () => note('reply'))
    b.setHandler(0, message => note(`returned: ${message.reason}`))
    const poll = (endpoint: typeof a): void => {
      isPolling = true
      endpoint.poll()
      isPolling = false
    }
    // More answers than the queue takes: some of them wait within b while it closes.
    for (let i = 0; i < 40; i++) t.equal(a.request(0, ECHO), OK)
    await until('the requests', () => {
      poll(b)
      return ran.length === 40
    })
    t.equal(b.request(0, ECHO) === OK, false, 'answers wait')
    const closing = b.close()
    await until('the answers', () => {
      poll(a)
      return ran.length === 80
    })
    await closing
    t.strictSame(new Set(ran), new Set(['request', 'reply']))

    const [c, d] = await world.openPair(MANUAL, MANUAL)
    c.setHandler(0, message => note(`${message.reason}`))
    d.setHandler(SINK, () => note('a request to one who closes'))
    for (let i = 0; i < 5; i++) t.equal(c.request(0, SINK), OK)
    await d.close()
    await until('returns', () => {
      poll(c)
      return ran.length === 85
    })
    t.strictSame(
      ran.slice(80),
      Array.from({ length: 5 }, () => 'PEER_CLOSED'),
    )
  },
)

testOver(DRIVER_LISTS, 'close() with manual progress sends again what was lost', async (t, world) => {
  const COUNT = 60
  const [a, b] = await world.openPair(MANUAL, { ...MANUAL, credits: COUNT })
  const arrivals = keepArrivals(a, SINK)
  for (let i = 0; i < COUNT; i++) t.equal(b.request(0, SINK, i), OK)
  const closing = b.close()
  await until('all of them', () => {
    a.poll()
    return arrivals.length === COUNT
  })
  await closing
})

testOver(
  DRIVER_LISTS,
  'a wait that is aborted for nothing in particular rejects with that',
  async (t, world) => {
    const a = await world.open()
    const controller = new AbortController()
    const wait = errorOf(a.wait({ signal: controller.signal }))
    controller.abort(null)
    t.equal(await withWatchdog('its end', wait), null)
  },
)
