/** messages() as an async iterable, what its messages can do, and how it slows its senders. */
import { setTimeout as sleep } from 'node:timers/promises'
import { handleEach, OK, type ReceivedMessage } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { DRIVER_LISTS, PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { eightWords, keepArrivals } from '../support/endpoints.ts'
import { liveMemory } from '../support/garbage.ts'
import {
  FLOW_CREDITS as CREDITS,
  expectEach,
  openFlow,
  FLOW_STREAM as STREAM,
  sorted,
  upTo,
} from '../support/message-flow.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'
import type { Produced, Question } from './endpoint-questions.ts'

const fixture = new URL('./endpoint-child.js', import.meta.url)
const ANSWER = 3

testOver(
  DRIVER_LISTS,
  'a loop has handled a message when it asks for the next, or ends',
  async (t, world) => {
    const flow = await openFlow(world)
    const sending = flow.send(...upTo(100))
    const seen: number[] = []
    for await (const message of flow.to.messages(STREAM)) {
      seen.push(message.word(0))
      if (seen.length === 1) {
        await until('no credit', () => flow.creditsLeft === 0)
        await until('quiet', () => flow.from.stats().peers[0]?.outstanding === CREDITS)
      }
      if (seen.length === 100) break
    }
    await sending
    await flow.untilAllCredits()
    t.strictSame(sorted(seen), upTo(100))
    t.strictSame(flow.returned, [])
  },
)

for (const how of ['break', 'throw', 'return'] as const) {
  testOver(
    DRIVER_LISTS,
    `${how} out of a loop: what it has not seen comes back, and the next loop goes on`,
    async (t, world) => {
      const flow = await openFlow(world)
      const loop = async (count: number): Promise<void> => {
        for await (const message of flow.to.messages(STREAM)) {
          flow.taken.push(message.word(0))
          if (flow.taken.length < count) continue
          if (how === 'break') break
          if (how === 'return') return
          throw new Error('out of the loop')
        }
      }
      const looping = loop(10)
      const sending = flow.send(...upTo(50))
      if (how === 'throw') await t.rejects(looping, { message: 'out of the loop' })
      else await looping
      await sending
      await flow.untilAllCredits()
      await until('the rest', () => flow.taken.length + flow.returned.length === 50)
      expectEach(t, flow, 50)
      t.equal(flow.taken.length, 10)
      const again = loop(12)
      await flow.send(50, 51)
      if (how === 'throw') await t.rejects(again, { message: 'out of the loop' })
      else await again
      t.strictSame(sorted(flow.taken.slice(10)), [50, 51])
    },
  )
}

testOver(
  DRIVER_LISTS,
  'next() may be asked for ahead, and by two loops that share the messages',
  async (t, world) => {
    const flow = await openFlow(world)
    const iterator = flow.to.messages(STREAM)[Symbol.asyncIterator]()
    const asked = upTo(10).map(() => iterator.next())
    const other: number[] = []
    const loop = (async () => {
      for await (const message of flow.to.messages(STREAM)) {
        other.push(message.word(0))
        if (other.length === 10) break
      }
    })()
    await flow.send(...upTo(10))
    const results = await withWatchdog('ten messages', Promise.all(asked))
    await withWatchdog('the other loop', loop)
    t.strictSame(sorted(results.map(({ value }) => value.word(0))), upTo(10))
    t.strictSame(sorted(other), upTo(10), 'each loop gets each message')
    const last = iterator.next()
    await iterator.return?.()
    t.match(await last, { done: true })
    t.match(await iterator.next(), { done: true })
    await flow.untilAllCredits()
  },
)

testOver(
  DRIVER_LISTS,
  'the end of the endpoint ends its loops, and senders get back what was not seen',
  async (t, world) => {
    const flow = await openFlow(world)
    const loop = (async () => {
      for await (const message of flow.to.messages(STREAM)) {
        flow.taken.push(message.word(0))
        if (flow.taken.length === 1) void flow.to.close()
        await sleep(1)
      }
    })()
    let isComplete = false
    flow.to.messages(STREAM).subscribe({ complete: () => (isComplete = true) })
    for (const number of upTo(CREDITS)) t.equal(flow.from.request(0, STREAM, number), OK)
    await withWatchdog('the end of the loop', loop)
    await until('the end of the subscription', () => isComplete)
    await until('all of them', () => flow.creditsLeft === CREDITS)
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  'a consumer 100 times slower than its producer: bounded memory, nothing lost',
  async (t, world) => {
    const COUNT = 400
    const SIZE = 32 * 1024
    const GROWTH_MAX = 4 * 2 ** 20
    const AT_ONCE = 2
    const SLOW_MS_MAX = 10
    const child = new Child(t, fixture, [world.list.name])
    const ask = <A>(question: Question): Promise<A> => child.ask<A>(question)
    await ask({ ask: 'open', options: { credits: CREDITS } })
    const b = await world.open({ credits: CREDITS })
    await ask({ ask: 'map', destination: 0, name: b.name })

    // How long the producer needs for one message whose consumer does nothing.
    b.setHandler(STREAM, () => {})
    const question: Question = { ask: 'produce', destination: 0, count: 1000, size: SIZE }
    const rounds = [
      await ask<Produced>(question),
      await ask<Produced>(question),
      await ask<Produced>(question),
    ]
    b.setHandler(STREAM, undefined)
    const quickMs = Math.min(...rounds.map(({ ms }) => ms)) / 1000
    // A bad network is slow by itself: there is no need to wait for hundreds of its time-outs.
    const slowMs = Math.min(SLOW_MS_MAX, Math.max(0.5, 100 * quickMs))
    t.comment(
      `the producer needs ${quickMs.toFixed(4)} ms for a message, the consumer ${slowMs.toFixed(2)} ms`,
    )

    let emitted = 0
    let handled = 0
    let unhandledMax = 0
    let running = 0
    let runningMax = 0
    const seen = new Uint8Array(COUNT)
    const consume = async (message: ReceivedMessage): Promise<void> => {
      runningMax = Math.max(runningMax, ++running)
      const endMs = performance.now() + slowMs
      while (performance.now() < endMs) await sleep(0)
      running--
      seen[message.word(0)] = (seen[message.word(0)] as number) + (message.length === SIZE ? 1 : 100)
      handled++
    }
    b.messages(STREAM).pipe(handleEach(consume, AT_ONCE)).subscribe()
    b.messages(STREAM).subscribe(() => {
      emitted++
      unhandledMax = Math.max(unhandledMax, emitted - handled)
    })
    const producing = ask<Produced>({ ask: 'produce', destination: 0, count: COUNT, size: SIZE })
    await until('a tenth', () => handled > COUNT / 10)
    const before = await liveMemory()
    let most = before
    for (let i = 2; i < 10; i++) {
      await until('a tenth more', () => handled > (i * COUNT) / 10)
      most = Math.max(most, await liveMemory())
    }
    await until('all of it', () => handled === COUNT)
    const report = await producing
    t.ok(
      seen.every(count => count === 1),
      'each once, and whole',
    )
    t.equal(report.returned, 0)
    t.ok(unhandledMax <= CREDITS, `${unhandledMax} were here at most`)
    t.equal(runningMax, AT_ONCE, 'projections at a time')
    t.ok(most - before < GROWTH_MAX, `${((most - before) / 2 ** 20).toFixed(2)} MiB more in the middle`)
    const growth = (report.live - (rounds[2] as Produced).live) / 2 ** 20
    t.ok(
      report.live - (rounds[2] as Produced).live < GROWTH_MAX,
      `${growth.toFixed(2)} MiB more in the producer`,
    )
    await until('all credits', () => b.stats().peers.every(({ outstanding }) => outstanding === 0))
  },
)

testOver(
  DRIVER_LISTS,
  'requests of a stream are answered later, once; replies and done() give the credit back',
  async (t, world) => {
    const flow = await openFlow(world)
    const answers = keepArrivals(flow.from, ANSWER)
    const kept: ReceivedMessage[] = []
    flow.subscribe(handleEach(async message => void kept.push(message)))
    for (const number of upTo(3)) t.equal(flow.from.request(0, STREAM, number), OK)
    await until('all', () => kept.length === 3)
    await flow.untilAllCredits()
    for (const message of kept)
      t.throws(() => message.reply(ANSWER), { code: 'ERR_AM_TOKEN' }, 'its credit is gone')

    const other = await openFlow(world)
    const held = keepArrivals(other.from, ANSWER)
    other.subscribe(
      handleEach(message => {
        kept.push(message)
        return other.project(message)
      }, CREDITS),
    )
    for (const number of upTo(CREDITS)) t.equal(other.from.request(0, STREAM, number), OK)
    await until('all', () => other.taken.length === CREDITS)
    const [first, second, third, fourth] = kept.slice(3) as [
      ReceivedMessage,
      ReceivedMessage,
      ReceivedMessage,
      ReceivedMessage,
    ]
    first.reply(ANSWER, first.word(0), 10)
    second.replyMedium(ANSWER, Buffer.from('medium'), second.word(0), 20)
    third.done()
    await until('three credits', () => other.creditsLeft === CREDITS - 1)
    await until('both answers', () => held.length === 2)
    for (const message of [first, second, third])
      t.throws(() => message.reply(ANSWER), { code: 'ERR_AM_TOKEN' })
    fourth.reply(ANSWER, 3, 40)
    other.open()
    await other.untilAllCredits()
    await until('the last answer', () => held.length === 3)
    t.strictSame(held.map(({ words }) => words[1]).toSorted(), [10, 20, 40])
    t.strictSame(held.map(({ payload }) => String(payload)).toSorted(), ['', '', 'medium'])
    t.strictSame(answers, [])
  },
)

testOver(
  DRIVER_LISTS,
  'returned messages and replies make streams, too; they cannot be answered',
  async (t, world) => {
    const [a, b] = await world.openPair()
    const returned: ReceivedMessage[] = []
    const replies: ReceivedMessage[] = []
    a.messages(0).subscribe(message => returned.push(message))
    a.messages(ANSWER).subscribe(message => replies.push(message))
    b.setHandler(STREAM, message => message.replyMedium(ANSWER, Buffer.from('answer'), 9))
    t.equal(a.requestMedium(0, 99, Buffer.from('lost'), 5), OK)
    t.equal(a.request(0, STREAM), OK)
    await until('both', () => returned.length === 1 && replies.length === 1)
    const [back, reply] = [returned[0] as ReceivedMessage, replies[0] as ReceivedMessage]
    t.match(back, { reason: 'NO_SUCH_HANDLER', handler: 99, destination: 0, isRequest: false })
    t.strictSame([back.words, String(back.payload())], [[5], 'lost'])
    t.match(reply, { reason: undefined, handler: ANSWER, source: b.name, isRequest: false, length: 6 })
    t.strictSame([reply.words, String(reply.copy())], [[9], 'answer'])
    t.strictSame(
      Array.from({ length: 8 }, (_, i) => reply.word(i)),
      eightWords(9),
    )
    for (const message of [back, reply]) t.throws(() => message.reply(ANSWER), { code: 'ERR_AM_TOKEN' })
  },
)

testOver(DRIVER_LISTS, 'a handler and a stream do not share an index', async (t, world) => {
  const [a, b] = await world.openPair()
  b.setHandler(STREAM, () => {})
  const errors: { code?: string }[] = []
  b.messages(STREAM).subscribe({ error: error => errors.push(error) })
  t.match(errors, [{ code: 'ERR_AM_HANDLER_TAKEN' }])
  t.throws(() => b.messages(STREAM)[Symbol.asyncIterator](), { code: 'ERR_AM_HANDLER_TAKEN' })
  b.setHandler(STREAM, undefined)
  const subscription = b.messages(STREAM).subscribe()
  let handled = 0
  b.setHandler(STREAM, () => void handled++)
  subscription.unsubscribe()
  t.equal(a.request(0, STREAM), OK)
  await until('the handler, which the subscriber did not take away', () => handled === 1)
})

testOver(
  DRIVER_LISTS,
  'a handler that was taken away is set again for the next who joins',
  async (t, world) => {
    const [a, b] = await world.openPair()
    const seen: string[] = []
    const note = (who: string) => (message: ReceivedMessage) => void seen.push(`${who} ${message.word(0)}`)
    b.messages(STREAM).subscribe(note('first'))
    b.setHandler(STREAM, undefined)
    b.messages(STREAM).subscribe(note('second'))
    t.equal(a.request(0, STREAM, 7), OK)
    await until('both of them', () => seen.length === 2)
    t.strictSame(seen, ['first 7', 'second 7'])
    b.setHandler(STREAM, () => {})
    t.throws(() => b.messages(STREAM)[Symbol.asyncIterator](), { code: 'ERR_AM_HANDLER_TAKEN' })
  },
)
