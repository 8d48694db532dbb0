/** messages() through handleEach and the operators of RxJS: credits go back when a message has been handled, and nothing is lost. */
import {
  catchError,
  concatMap,
  delay,
  EMPTY,
  exhaustMap,
  filter,
  from,
  map,
  merge,
  mergeMap,
  retry,
  switchMap,
  take,
  takeWhile,
  tap,
} from 'rxjs'
import t from 'tap'
import { handleEach, OK, type ReceivedMessage } from '../../am/index.ts'
import { DRIVER_LISTS } from '../support/driver-lists.ts'
import { deliver, keepArrivals } from '../support/endpoints.ts'
import {
  FLOW_CREDITS as CREDITS,
  expectEach,
  type Flow,
  openFlow,
  type Pipe,
  FLOW_STREAM as STREAM,
  sorted,
  upTo,
} from '../support/message-flow.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const OTHER = 2
const ANSWER = 3

for (const [name, width, pipes] of [
  ['handleEach', 1, (flow: Flow) => [handleEach(flow.project)]],
  ['handleEach(4)', 4, (flow: Flow) => [handleEach(flow.project, 4)]],
  [
    'map, filter, then handleEach',
    1,
    (flow: Flow) => [map(m => m as ReceivedMessage), filter(() => true), handleEach(flow.project)],
  ],
  [
    'handleEach without a limit, then map',
    CREDITS,
    (flow: Flow) => [
      handleEach(flow.project, Number.POSITIVE_INFINITY),
      map(number => number),
      filter(() => false),
    ],
  ],
  [
    'handleEach, then a slow mergeMap',
    1,
    (flow: Flow) => [handleEach(flow.project), mergeMap(n => from([n]).pipe(delay(1)))],
  ],
  [
    'handleEach, then concatMap of many',
    1,
    (flow: Flow) => [handleEach(flow.project), concatMap(() => from([1, 2, 3])), mergeMap(n => from([n, n]))],
  ],
] as [string, number, (flow: Flow) => Pipe[]][]) {
  testOver(
    DRIVER_LISTS,
    `${name}: at most the credits are unhandled, and each is handled once`,
    async (t, world) => {
      const flow = await openFlow(world)
      flow.subscribe(...pipes(flow))
      const sending = flow.send(...upTo(100))
      await until('the first projections', () => flow.running === width)
      await until('no credit', () => flow.creditsLeft === 0)
      await until('as many here', () => flow.emitted === CREDITS)
      t.equal(flow.handled.length, 0)
      for (let i = 1; i <= 20; i++) {
        flow.letGo()
        await until('the next', () => flow.handled.length === i && flow.running === width)
        t.ok(flow.emitted <= i + CREDITS)
      }
      flow.open()
      await sending
      await until('all', () => flow.handled.length === 100)
      await flow.untilAllCredits()
      t.strictSame(sorted(flow.handled), upTo(100))
      t.equal(flow.runningMax, width)
      t.ok(flow.unhandledMax <= CREDITS, `${flow.unhandledMax} unhandled at most`)
      t.strictSame(flow.returned, [])
    },
  )
}

testOver(
  DRIVER_LISTS,
  'a plain subscriber has handled a message when its function returns',
  async (t, world) => {
    const flow = await openFlow(world)
    flow.subscribe(
      map(message => flow.handled.push((message as ReceivedMessage).word(0))),
      filter(() => false),
    )
    await flow.send(...upTo(200))
    await flow.untilAllCredits()
    t.strictSame(sorted(flow.handled), upTo(200))
  },
)

for (const [name, operator] of [
  ['concatMap', concatMap],
  ['mergeMap', mergeMap],
  ['switchMap', switchMap],
  ['exhaustMap', exhaustMap],
] as [string, typeof concatMap][]) {
  testOver(
    DRIVER_LISTS,
    `${name}: to RxJS a message has been handled when the call returns, whatever it begins`,
    async (t, world) => {
      const flow = await openFlow(world)
      flow.subscribe(operator(flow.project))
      await withWatchdog('all of them', flow.send(...upTo(30)))
      await flow.untilAllCredits()
      t.equal(flow.emitted, 30)
      t.strictSame(flow.returned, [])
      flow.open()
    },
  )
}

testOver(
  DRIVER_LISTS,
  'a message that a fast subscriber has handled is held by handleEach of another one',
  async (t, world) => {
    const flow = await openFlow(world)
    const answers = keepArrivals(flow.from, ANSWER)
    const stream = flow.to.messages(STREAM)
    stream.subscribe(message => void flow.taken.push(message.word(0)))
    const answer = async (message: ReceivedMessage): Promise<void> => {
      await flow.project(message)
      message.reply(ANSWER, message.word(0))
    }
    stream.pipe(handleEach(answer, 2)).subscribe()
    await flow.send(...upTo(CREDITS))
    await until('two projections', () => flow.running === 2)
    t.equal(flow.creditsLeft, 0)
    t.equal(answers.length, 0)
    flow.open()
    await until('all answers', () => answers.length === CREDITS)
    await flow.untilAllCredits()
  },
)

testOver(DRIVER_LISTS, 'the same stream merged with itself: both emissions must end', async (t, world) => {
  const flow = await openFlow(world)
  const stream = flow.to.messages(STREAM)
  const subscription = merge(stream, stream).pipe(handleEach(flow.project)).subscribe()
  await flow.send(0, 1)
  await until('the first projection', () => flow.running === 1)
  flow.letGo()
  await until('its second emission', () => flow.handled.length === 1 && flow.running === 1)
  t.equal(flow.creditsLeft, CREDITS - 2)
  subscription.unsubscribe()
  flow.open()
  await flow.untilAllCredits()
  await until('the return of the one that waited', () => flow.returned.length === 1)
})

t.test('handleEach refuses what it cannot use', async t => {
  for (const concurrency of [0, -1, 1.5, Number.NaN, '2' as unknown as number]) {
    t.throws(() => handleEach(async () => {}, concurrency), { code: 'ERR_AM_ARGUMENT' }, String(concurrency))
  }
  t.throws(() => handleEach(undefined as never), { code: 'ERR_AM_ARGUMENT' })
})

for (const [name, pipes] of [
  ['take(5)', (flow: Flow) => [take(5), handleEach(flow.project)]],
  ['handleEach, take(5)', (flow: Flow) => [handleEach(flow.project), take(5)]],
  ['takeWhile', (flow: Flow) => [handleEach(flow.project, 2), takeWhile(() => flow.handled.length < 5)]],
] as [string, (flow: Flow) => Pipe[]][]) {
  testOver(
    DRIVER_LISTS,
    `${name}: what is not taken comes back, and the next subscriber gets the rest`,
    async (t, world) => {
      const flow = await openFlow(world)
      flow.subscribe(...pipes(flow))
      flow.open()
      await flow.send(...upTo(40))
      await flow.untilAllCredits()
      await until('the rest to come back', () => flow.taken.length + flow.returned.length === 40)
      expectEach(t, flow, 40)
      t.ok(flow.taken.length >= 5 && flow.taken.length <= 6, `${flow.taken.length} were handled`)
      flow.subscribe(handleEach(flow.project))
      await flow.send(40, 41)
      await until('the next two', () => flow.taken.includes(40) && flow.taken.includes(41))
    },
  )
}

testOver(
  DRIVER_LISTS,
  'unsubscribe in the middle: what runs is done with, what waits comes back',
  async (t, world) => {
    const flow = await openFlow(world)
    const subscription = flow.subscribe(handleEach(flow.project))
    for (const number of upTo(CREDITS)) t.equal(flow.from.request(0, STREAM, number), OK)
    await until('all of them', () => flow.emitted === CREDITS)
    subscription.unsubscribe()
    await flow.untilAllCredits()
    await until('three returns', () => flow.returned.length === CREDITS - 1)
    expectEach(t, flow, CREDITS)
    t.equal(flow.from.request(0, STREAM, 4), OK)
    await until('a return for want of a handler', () => flow.returned.includes(4))
  },
)

testOver(
  DRIVER_LISTS,
  'unsubscribe and subscribe again, in a flood: each is handled or comes back',
  async (t, world) => {
    const flow = await openFlow(world)
    let isOver = false
    const sending = flow.send(...upTo(2000)).then(() => {
      isOver = true
    })
    while (!isOver) {
      const subscription = flow.subscribe(handleEach(flow.project, 2))
      await until('some', () => isOver || flow.running === 2)
      flow.letGo()
      flow.letGo()
      await until('the rest', () => isOver || flow.running === 2)
      subscription.unsubscribe()
      flow.letGo()
      flow.letGo()
      await until('none', () => flow.running === 0)
    }
    await sending
    await flow.untilAllCredits()
    await until('all', () => flow.taken.length + flow.returned.length === 2000)
    expectEach(t, flow, 2000)
  },
)

testOver(
  DRIVER_LISTS,
  'an error in a projection ends the subscription, and what waits comes back',
  async (t, world) => {
    const flow = await openFlow(world)
    const fail = async (message: ReceivedMessage): Promise<void> => {
      flow.taken.push(message.word(0))
      throw new Error('the projection')
    }
    flow.subscribe(handleEach(fail))
    for (const number of upTo(CREDITS)) t.equal(flow.from.request(0, STREAM, number), OK)
    await flow.untilAllCredits()
    await until('each of them', () => flow.taken.length + flow.returned.length === CREDITS)
    expectEach(t, flow, CREDITS)
    t.match(flow.errors, [{ message: 'the projection' }])
    t.equal(flow.taken.length, 1)
  },
)

testOver(
  DRIVER_LISTS,
  'retry and catchError: a failed message is done with, and no other is mistaken for it',
  async (t, world) => {
    const flow = await openFlow(world)
    const failSometimes = async (message: ReceivedMessage): Promise<number> => {
      if (message.word(0) % 5 === 0) {
        flow.taken.push(message.word(0))
        throw new Error('the projection')
      }
      return await flow.project(message)
    }
    flow.subscribe(handleEach(failSometimes), retry())
    const sending = flow.send(...upTo(60))
    const timer = setInterval(() => flow.letGo(), 0)
    await sending
    await flow.untilAllCredits()
    await until('each of them', () => flow.taken.length + flow.returned.length === 60)
    clearInterval(timer)
    expectEach(t, flow, 60)
    t.ok(flow.emitted - flow.handled.length <= 60)

    const other = await openFlow(world)
    other.subscribe(
      handleEach(async () => Promise.reject(new Error('at once'))),
      catchError(() => EMPTY),
    )
    for (const number of upTo(CREDITS)) t.equal(other.from.request(0, STREAM, number), OK)
    await other.untilAllCredits()
    await until('three returns', () => other.returned.length === CREDITS - 1)
  },
)

testOver(
  DRIVER_LISTS,
  'several subscribers: each gets each message, and the slowest holds the credit',
  async (t, world) => {
    const flow = await openFlow(world)
    const fast: number[] = []
    const quick = flow.to.messages(STREAM).subscribe(message => fast.push(message.word(0)))
    flow.subscribe(handleEach(flow.project))
    const sending = flow.send(...upTo(30))
    await until('no credit', () => flow.creditsLeft === 0 && fast.length === CREDITS)
    flow.letGo()
    await until('one more', () => fast.length === CREDITS + 1)
    quick.unsubscribe()
    flow.open()
    await sending
    await flow.untilAllCredits()
    t.strictSame(sorted(flow.handled), upTo(30))
    t.equal(fast.length, CREDITS + 1)
    t.strictSame(flow.returned, [])
  },
)

testOver(
  DRIVER_LISTS,
  'a subscriber that ends another one, or subscribes again, in the middle of a message',
  async (t, world) => {
    const flow = await openFlow(world)
    const seen: string[] = []
    const note = (who: string) => (message: ReceivedMessage) => seen.push(`${who} ${message.word(0)}`)
    const second: { unsubscribe(): void }[] = []
    flow.to.messages(STREAM).subscribe(message => {
      note('first')(message)
      if (message.word(0) === 1) second[0]?.unsubscribe()
      if (message.word(0) === 2) flow.to.messages(STREAM).subscribe(note('third'))
    })
    second.push(flow.to.messages(STREAM).subscribe(note('second')))
    for (const number of upTo(20)) {
      await flow.send(number)
      await until('it', () => seen.includes(`first ${number}`))
    }
    await flow.untilAllCredits()
    t.equal(seen.filter(one => one.startsWith('first')).length, 20)
    t.strictSame(
      seen.filter(one => one.startsWith('second')),
      ['second 0'],
    )
    t.strictSame(seen.filter(one => one.startsWith('third')).length, 17)
    t.strictSame(flow.returned, [])
  },
)

testOver(DRIVER_LISTS, 'merged streams share one queue, and its bound', async (t, world) => {
  const flow = await openFlow(world)
  const [a, b] = [flow.from, flow.to]
  let emitted = 0
  const streams = merge(b.messages(STREAM), b.messages(OTHER)).pipe(tap(() => void emitted++))
  streams.pipe(handleEach(flow.project)).subscribe()
  const sending = (async () => {
    for (const number of upTo(100)) {
      await deliver(a, 0, () => a.request(0, number % 2 === 0 ? STREAM : OTHER, number))
    }
  })()
  for (let i = 0; i < 60; i++) {
    await until('a projection', () => flow.running === 1)
    t.ok(emitted - flow.handled.length <= CREDITS)
    flow.letGo()
    await until('its end', () => flow.handled.length === i + 1)
  }
  flow.open()
  await sending
  await flow.untilAllCredits()
  t.strictSame(sorted(flow.handled), upTo(100))
})

testOver(DRIVER_LISTS, 'merged streams with a plain subscriber', async (t, world) => {
  const flow = await openFlow(world)
  merge(flow.to.messages(STREAM), flow.to.messages(OTHER)).subscribe(m => flow.handled.push(m.word(0)))
  for (const number of upTo(50)) {
    await deliver(flow.from, 0, () => flow.from.request(0, number < 25 ? STREAM : OTHER, number))
  }
  await flow.untilAllCredits()
  t.strictSame(sorted(flow.handled), upTo(50))
})
