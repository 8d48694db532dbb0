/** A request's handler replies at most once, to its requester; a reply's handler sends nothing; no handler waits. */
import t from 'tap'
import { type Message, OK } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { DRIVER_LISTS, skipReason } from '../support/driver-lists.ts'
import { eightWords, errorOf, keepArrivals, pollUntil } from '../support/endpoints.ts'
import { until } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const REQUEST = 1
const ANSWER = 2
const SPARE = 3
const bytes = Buffer.from('payload')
const TOKEN = { name: 'AmError', code: 'ERR_AM_TOKEN' }
const RULE = { name: 'AmError', code: 'ERR_AM_HANDLER_RULE' }

/** Everything by which a message can be answered, and everything in it that lives only as long as its handler. */
const REPLIES: readonly [what: string, reply: (message: Message) => void][] = [
  ['reply', message => message.reply(SPARE, 1)],
  ['replyMedium', message => message.replyMedium(SPARE, bytes, 1)],
  ['replyLong', message => message.replyLong(SPARE, bytes, 0, 1)],
]
const READS: readonly [what: string, read: (message: Message) => void][] = [
  ['word', message => message.word(0)],
  ['payload', message => message.payload()],
  ['copy', message => message.copy()],
  ['source', (message: Message) => message.source],
  ['destination', (message: Message) => message.destination],
  ['handler', (message: Message) => message.handler],
  ['isRequest', (message: Message) => message.isRequest],
  ['length', (message: Message) => message.length],
  ['bytes', (message: Message) => message.bytes],
  ['offset', (message: Message) => message.offset],
  ['reason', (message: Message) => message.reason],
]

testOver(DRIVER_LISTS, 'a request is answered once, in any of three ways', async (t, world) => {
  const [a, b] = await world.openPair({ segment: 100 })
  for (const [first, answer] of REPLIES) {
    const answers = keepArrivals(a, SPARE)
    let isDone = false
    b.setHandler(REQUEST, message => {
      answer(message)
      for (const [second, again] of REPLIES) t.throws(() => again(message), TOKEN, `${first}, then ${second}`)
      t.equal(message.word(0), 5, 'it may still be read')
      isDone = true
    })
    t.equal(a.request(0, REQUEST, 5), OK)
    await until(first, () => isDone && answers.length > 0)
    t.equal(a.request(0, REQUEST, 5), OK)
    await until('another', () => answers.length > 1)
    t.strictSame(
      answers.map(({ words }) => words),
      [eightWords(1), eightWords(1)],
    )
  }
})

testOver(DRIVER_LISTS, 'a message that is no request cannot be answered', async (t, world) => {
  const [a, b] = await world.openPair({ segment: 100 }, { segment: 100 })
  const spare = keepArrivals(b, SPARE)
  const done: string[] = []
  const refuseAll = (what: string) => (message: Message) => {
    t.equal(message.isRequest, false)
    for (const [way, reply] of REPLIES) t.throws(() => reply(message), TOKEN, `${way} to ${what}`)
    done.push(what)
  }
  for (const [kind, answer] of [
    ['a reply', (message: Message) => message.reply(ANSWER)],
    ['a medium reply', (message: Message) => message.replyMedium(ANSWER, bytes)],
    ['a long reply', (message: Message) => message.replyLong(ANSWER, bytes, 0)],
  ] as const) {
    b.setHandler(REQUEST, answer)
    a.setHandler(ANSWER, refuseAll(kind))
    t.equal(a.request(0, REQUEST), OK)
    await until(kind, () => done.includes(kind))
  }
  a.setHandler(ANSWER, refuseAll('a get'))
  t.equal(a.get(0, ANSWER, 0, 10, 0), OK)
  await until('the get', () => done.includes('a get'))
  a.setHandler(0, refuseAll('a returned message'))
  t.equal(a.request(0, 99), OK)
  await until('the return', () => done.includes('a returned message'))
  t.strictSame(spare, [])
})

testOver(DRIVER_LISTS, 'a message that is kept throws once its handler has returned', async (t, world) => {
  const [a, b] = await world.openPair({ segment: 100 }, { segment: 100 })
  const kept: Message[] = []
  b.setHandler(REQUEST, message => void kept.push(message))
  b.setHandler(SPARE, message => {
    kept.push(message)
    message.reply(ANSWER)
  })
  a.setHandler(ANSWER, message => void kept.push(message))
  t.equal(a.requestMedium(0, REQUEST, bytes, 1), OK)
  t.equal(a.request(0, SPARE, 1), OK)
  await until('three messages', () => kept.length === 3)
  for (const message of kept) {
    for (const [what, use] of [...REPLIES, ...READS]) t.throws(() => use(message), TOKEN, what)
  }
})

testOver(DRIVER_LISTS, 'a request that a handler keeps cannot answer the next one', async (t, world) => {
  const [a, b] = await world.openPair()
  const answers = keepArrivals(a, SPARE)
  let kept: Message | undefined
  const outcomes: unknown[] = []
  b.setHandler(REQUEST, message => {
    kept ??= message
    queueMicrotask(() => {
      try {
        kept?.reply(SPARE)
      } catch (error) {
        outcomes.push((error as { code: string }).code)
      }
    })
  })
  for (let i = 0; i < 3; i++) t.equal(a.request(0, REQUEST), OK)
  await until('three refusals', () => outcomes.length === 3)
  t.strictSame(outcomes, ['ERR_AM_TOKEN', 'ERR_AM_TOKEN', 'ERR_AM_TOKEN'])
  t.strictSame(answers, [])
})

testOver(DRIVER_LISTS, 'no handler may request, get, call or poll, on no endpoint', async (t, world) => {
  const [a, b] = await world.openPair({ segment: 100 }, { segment: 100 })
  const [c, d] = await world.openPair({ segment: 100 }, { segment: 100 })
  const strays = keepArrivals(d, SPARE)
  const rejections: Promise<unknown>[] = []
  const done: string[] = []
  const tryAll = (what: string) => (message: Message) => {
    for (const endpoint of [a, b, c]) {
      t.throws(() => endpoint.request(0, SPARE), RULE)
      t.throws(() => endpoint.requestMedium(0, SPARE, bytes), RULE)
      t.throws(() => endpoint.requestLong(0, SPARE, bytes, 0), RULE)
      t.throws(() => endpoint.get(0, SPARE, 0, 1, 0), RULE)
      t.throws(() => endpoint.poll(), RULE)
      rejections.push(errorOf(endpoint.call(0, SPARE)))
    }
    if (message.isRequest) message.reply(ANSWER)
    done.push(what)
  }
  b.setHandler(REQUEST, tryAll('a request'))
  a.setHandler(ANSWER, tryAll('a reply'))
  a.setHandler(0, tryAll('a returned message'))
  t.equal(a.request(0, REQUEST), OK)
  await until('a reply', () => done.length === 2)
  t.equal(a.request(0, 99), OK)
  await until('a return', () => done.length === 3)
  a.setHandler(SPARE, tryAll('a get'))
  t.equal(a.get(0, SPARE, 0, 10, 0), OK)
  await until('a get', () => done.length === 4)
  for (const error of await Promise.all(rejections)) t.match(error, RULE)
  t.strictSame(strays, [])
  t.equal(c.request(0, SPARE, 3), OK, 'and outside of handlers everything works')
  await until('it', () => strays.length === 1)
})

testOver(DRIVER_LISTS, 'types say that a handler is given nothing to request with', async (t, world) => {
  const [a, b] = await world.openPair()
  let members: string[] = []
  b.setHandler(REQUEST, message => {
    for (let on: object = message; on !== Object.prototype; on = Object.getPrototypeOf(on)) {
      members = [...members, ...Object.getOwnPropertyNames(on)]
    }
  })
  t.equal(a.request(0, REQUEST), OK)
  await until('it', () => members.length > 0)
  t.strictSame(
    members.filter(name => /request$|requestMedium|requestLong|^get$|^call$|^poll$/.test(name)),
    [],
  )
})

testOver(
  DRIVER_LISTS,
  'a handler may map, unmap, set handlers and wait for what it has begun',
  async (t, world) => {
    const [a, b] = await world.openPair()
    const c = await world.open()
    const arrivals = keepArrivals(c, SPARE)
    let mapping: Promise<void> | undefined
    b.setHandler(REQUEST, message => {
      mapping = b.map(7, c.name)
      b.unmap(0)
      message.reply(ANSWER)
    })
    const answers = keepArrivals(a, ANSWER)
    t.equal(a.request(0, REQUEST), OK)
    await until('the reply', () => answers.length > 0)
    await mapping
    t.equal(b.request(7, SPARE), OK)
    await until('the message', () => arrivals.length > 0)
    t.throws(() => b.request(0, SPARE), { code: 'ERR_AM_NOT_MAPPED' })
  },
)

testOver(
  DRIVER_LISTS,
  'an endpoint may be closed by its own handler, of a request and of a reply',
  async (t, world) => {
    for (const who of ['requester', 'replier'] as const) {
      const [a, b] = await world.openPair({ credits: 4 })
      const returned = keepArrivals(a, 0)
      let handled = 0
      let closed: Promise<void> | undefined
      a.setHandler(ANSWER, () => {
        if (who === 'requester') closed = a.close()
      })
      b.setHandler(REQUEST, message => {
        handled++
        if (who === 'replier') closed ??= b.close()
        message.reply(ANSWER)
      })
      for (let i = 0; i < 4; i++) t.equal(a.request(0, REQUEST, i), OK)
      await until('the close', () => closed !== undefined)
      await closed
      if (who === 'replier') {
        await until('the rest to come back', () => returned.length + handled >= 4)
        t.ok(returned.every(({ reason }) => reason === 'PEER_CLOSED'))
      }
      t.ok(handled >= 1)
    }
  },
)

testOver(
  DRIVER_LISTS,
  'with manual progress an exception leaves poll(), and its message counts as handled',
  async (t, world) => {
    const [a, b] = await world.openPair({ credits: 2 }, { progress: 'manual', credits: 2 })
    const numbers: number[] = []
    b.setHandler(REQUEST, message => {
      numbers.push(message.word(0))
      if (message.word(0) % 2 === 0) throw new Error(`message ${message.word(0)}`)
    })
    const errors: string[] = []
    for (let i = 0; i < 10; i++) {
      while (a.request(0, REQUEST, i) !== OK) {
        try {
          await pollUntil('a credit', [b], () => (a.stats().peers[0]?.creditsLeft ?? 0) > 0)
        } catch (error) {
          errors.push((error as Error).message)
        }
      }
    }
    await until('all of them', () => {
      try {
        b.poll()
      } catch (error) {
        errors.push((error as Error).message)
      }
      return numbers.length === 10
    })
    t.strictSame(numbers.toSorted(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    t.strictSame(errors.toSorted(), ['message 0', 'message 2', 'message 4', 'message 6', 'message 8'])
  },
)

const fixture = new URL('./throwing-endpoint-child.js', import.meta.url)

for (const list of DRIVER_LISTS) {
  const skip = skipReason(list)
  t.test(
    `${list.name}: exceptions of handlers reach uncaughtException, and nothing else suffers`,
    { skip },
    async t => {
      const child = new Child(t, fixture, [list.name])
      const report = await child.receive<{
        errors: string[]
        requests: number[]
        replies: number[]
        returns: number[]
      }>()
      const all = Array.from({ length: 30 }, (_, i) => i)
      t.strictSame(report.requests, all, 'each request was handled once')
      t.strictSame(report.replies, all, 'each reply, too, also to requests whose handler threw after it')
      t.strictSame(report.returns, all, 'and each returned message')
      const expected = all.flatMap(i => (i % 3 === 0 ? [`reply ${i}`, `request ${i}`, `return ${i}`] : []))
      t.strictSame(report.errors, [...expected, 'subscriber 1'].toSorted())
      t.equal((await child.end()).code, 0)
    },
  )

  t.test(`${list.name}: an uncaught exception ends the process, as any callback's`, { skip }, async t => {
    const child = new Child(t, fixture, [list.name, 'uncaught'])
    t.equal((await child.end()).code, 1)
    t.match(child.stderr, /Error: request 0/)
  })
}
