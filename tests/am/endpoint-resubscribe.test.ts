/** Operators that subscribe again in the middle of a message: it is done with, and its credit goes back. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { catchError, concat, map, repeat, retry, take, tap } from 'rxjs'
import { handleEach, type ReceivedMessage } from '../../am/index.ts'
import { DRIVER_LISTS } from '../support/driver-lists.ts'
import { deliver } from '../support/endpoints.ts'
import {
  FLOW_CREDITS as CREDITS,
  expectEach,
  type Flow,
  openFlow,
  type Pipe,
  FLOW_STREAM as STREAM,
  upTo,
} from '../support/message-flow.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'

const OTHER = 2
const COUNT = 60

const note = (flow: Flow): Pipe => tap((message: ReceivedMessage) => void flow.taken.push(message.word(0)))

/** Of every three messages one makes it throw, before the subscriber sees it. */
const throwing = (flow: Flow): Pipe =>
  map((message: ReceivedMessage) => {
    flow.taken.push(message.word(0))
    if (message.word(0) % 3 === 0) throw new Error('in the pipe')
    return message
  })

for (const [name, pipes] of [
  ['retry after a throw', (flow: Flow) => [throwing(flow), retry()]],
  ['catchError that goes on', (flow: Flow) => [throwing(flow), catchError((_, caught) => caught)]],
  ['take(5) and repeat', (flow: Flow) => [take(5), note(flow), repeat()]],
  [
    'repeat, then handleEach',
    (flow: Flow) => [take(5), note(flow), repeat(), handleEach(async message => await message)],
  ],
] as [string, (flow: Flow) => Pipe[]][]) {
  testOver(DRIVER_LISTS, `${name}: as many messages as you like pass`, async (t, world) => {
    const flow = await openFlow(world)
    flow.subscribe(...pipes(flow))
    await withWatchdog('all of them', flow.send(...upTo(COUNT)))
    await flow.untilAllCredits()
    expectEach(t, flow, COUNT)
    t.strictSame(flow.returned, [])
  })
}

testOver(
  DRIVER_LISTS,
  'concat: the message that ended the first stream is done with, and the second one flows',
  async (t, world) => {
    const flow = await openFlow(world)
    concat(flow.to.messages(STREAM).pipe(take(1)), flow.to.messages(OTHER)).subscribe(message => {
      flow.taken.push(message.word(0))
    })
    await flow.send(0)
    await until('the first', () => flow.taken.length === 1)
    await flow.untilAllCredits()
    for (let i = 1; i < COUNT; i++) await deliver(flow.from, 0, () => flow.from.request(0, OTHER, i))
    await flow.untilAllCredits()
    expectEach(t, flow, COUNT)
  },
)

testOver(DRIVER_LISTS, 'a stream that a message stands for holds its credit', async (t, world) => {
  const flow = await openFlow(world)
  const seen: number[] = []
  flow.subscribe(
    handleEach(() => flow.to.messages(OTHER).pipe(take(1)), CREDITS),
    tap(noteIn(seen)),
  )
  await flow.send(...upTo(CREDITS - 1))
  await until('all of them', () => flow.emitted === CREDITS - 1)
  for (let i = 0; i < 100; i++) await nextTurn()
  t.equal(flow.creditsLeft, 1)
  await deliver(flow.from, 0, () => flow.from.request(0, OTHER, 7))
  await flow.untilAllCredits()
  t.strictSame(seen, [7, 7, 7])
})

function noteIn(seen: number[]): (message: unknown) => void {
  return message => void seen.push((message as ReceivedMessage).word(0))
}
