/** Two endpoints that flood each other with requests whose handlers reply: no deadlock, no growth. */
import type { Test } from 'tap'
import { type Endpoint, NO_RESOURCE, OK, pollerStats } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { DRIVER_LISTS, PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { deliver, pollUntil } from '../support/endpoints.ts'
import { patterned } from '../support/frames.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'
import { ANSWER, ECHO, type Question, type Report } from './endpoint-questions.ts'

const fixture = new URL('./endpoint-child.js', import.meta.url)
/** What a process may grow by while it does the same all the time: far less than what flows through it. */
const GROWTH_MAX = 64 * 2 ** 20
/** The first of them sets the measure. */
const ROUNDS = 3

interface Flood {
  readonly what: string
  readonly size: number
  /** Within one process. */
  readonly few: number
  /** Between processes, whose memory is looked at. */
  readonly many: number
}
const FLOODS: readonly Flood[] = [
  { what: 'small', size: 16, few: 2000, many: 8000 },
  { what: 'large', size: 60_000, few: 200, many: 800 },
]

/** Echoes requests and counts answers, as endpoint-child.ts does. */
class Flooder {
  readonly counts = { echoed: 0, answered: 0, wrong: 0, returned: 0 }
  /** Messages that one turn of the event loop was given at most. */
  readonly #endpoint: Endpoint
  readonly #payloads: readonly Buffer[]
  readonly #size: number

  constructor(endpoint: Endpoint, size: number) {
    const { counts } = this
    this.#endpoint = endpoint
    this.#size = size
    this.#payloads = Array.from({ length: 8 }, (_, i) => patterned(size, i))
    endpoint.setHandler(0, () => void counts.returned++)
    endpoint.setHandler(ECHO, message => {
      counts.echoed++
      message.replyMedium(ANSWER, message.payload(), message.word(0))
    })
    endpoint.setHandler(ANSWER, message => {
      counts.answered++
      const expected = this.#payloads[message.word(0) % 8] as Buffer
      if (message.length !== this.#size || !expected.equals(message.payload())) counts.wrong++
    })
  }

  send(number: number): number {
    return this.#endpoint.requestMedium(0, ECHO, this.#payloads[number % 8] as Buffer, number)
  }

  async flood(count: number): Promise<void> {
    for (let number = 0; number < count; number++) {
      await deliver(this.#endpoint, 0, () => this.send(number))
    }
  }
}

for (const { what, size, few, many } of FLOODS) {
  for (const credits of [1, 64]) {
    const scale = credits === 1 ? 4 : 1

    testOver(
      DRIVER_LISTS,
      `a ${what} flood both ways, ${credits} credits, by the event loop`,
      async (t, world) => {
        const pair = await world.openPair({ credits }, { credits })
        const flooders = pair.map(endpoint => new Flooder(endpoint, size))
        await Promise.all(flooders.map(one => one.flood(few / scale)))
        await until('the last answer', () => flooders.every(one => one.counts.answered === few / scale))
        for (const { counts } of flooders) t.match(counts, { echoed: few / scale, wrong: 0, returned: 0 })
      },
    )

    testOver(DRIVER_LISTS, `a ${what} flood both ways, ${credits} credits, by polling`, async (t, world) => {
      const options = { credits, progress: 'manual' } as const
      const pair = await world.openPair(options, options)
      const flooders = pair.map(endpoint => new Flooder(endpoint, size))
      const sent = [0, 0]
      await pollUntil('the last answer', pair, () => {
        for (const [i, flooder] of flooders.entries()) {
          while ((sent[i] as number) < few / scale && flooder.send(sent[i] as number) === OK)
            sent[i] = (sent[i] as number) + 1
        }
        return flooders.every(one => one.counts.answered === few / scale)
      })
      for (const { counts } of flooders) t.match(counts, { echoed: few / scale, wrong: 0, returned: 0 })
    })

    testOver(
      PROCESS_DRIVER_LISTS,
      `a ${what} flood between processes, ${credits} credits${credits === 1 ? '' : ', in bounded memory'}`,
      async (t, world) => {
        // With one credit each message waits for the other process to run: too few for the memory to say anything.
        const count = credits === 1 ? few / scale : many
        const child = new Child(t, fixture, [world.list.name])
        const ask = <A>(question: Question): Promise<A> => child.ask<A>(question)
        const a = await world.open({ credits })
        const { name } = await ask<{ name: string }>({ ask: 'open', options: { credits } })
        await a.map(0, name)
        await ask({ ask: 'map', destination: 0, name: a.name })
        const flooder = new Flooder(a, size)
        const rounds: { own: number; child: number }[] = []
        for (let round = 0; round < ROUNDS; round++) {
          const theirs = ask<Report>({ ask: 'flood', destination: 0, count, size })
          await flooder.flood(count)
          const report = await theirs
          t.match(report, { answered: (round + 1) * count, wrong: 0, returned: 0 })
          rounds.push({ own: process.memoryUsage.rss(), child: report.rss })
        }
        await until('the last answer', () => flooder.counts.answered === ROUNDS * count)
        t.match(flooder.counts, { echoed: ROUNDS * count, wrong: 0, returned: 0 })
        if (credits > 1) expectBounded(t, rounds)
      },
    )
  }
}

function expectBounded(t: Test, rounds: readonly { own: number; child: number }[]): void {
  for (const who of ['own', 'child'] as const) {
    const [first, ...later] = rounds.map(round => round[who]) as [number, ...number[]]
    const growth = Math.max(...later) - first
    t.ok(
      growth < GROWTH_MAX,
      `${who} process: ${(growth / 2 ** 20).toFixed(1)} MiB more after the first round`,
    )
  }
}

testOver(
  DRIVER_LISTS,
  'answers that find no room hold back requests, not the event loop',
  async (t, world) => {
    const [a, b] = await world.openPair({ credits: 64 }, { credits: 64, progress: 'manual' })
    const flooder = new Flooder(a, 60_000)
    const other = new Flooder(b, 60_000)
    // 64 answers of 60,000 bytes are more than the queue to b takes, and b does not look.
    for (let number = 0; number < 64; number++) {
      await until('room', () => other.send(number) === OK)
    }
    await until('a to have answered', () => flooder.counts.echoed === 64)
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    let sent = 0
    const sending = (async () => {
      for (; sent < 10; sent++) await deliver(a, 0, () => a.request(0, ECHO))
    })()
    await until('the event loop to turn', () => turns > 5)
    clearInterval(timer)
    t.ok(sent < 10, 'a request waits for the answers before it')
    await pollUntil('everything', [b], () => other.counts.answered === 64 && other.counts.echoed === 10)
    await sending
    t.match(other.counts, { wrong: 0, returned: 0 })
  },
)

/** With the default queue of 1 MiB: answers that leave less room in it than the shortest message needs. */
const FRAME = 60_000 + 24
const FULL = [...Array.from({ length: 17 }, () => 60_000), 2 ** 20 - 17 * FRAME - 24 - 8]
const RING_DRIVER_LISTS = DRIVER_LISTS.filter(({ name }) => name === 'loopback' || name === 'shm')

/** Until this thread's poller has nothing to do: all its channels are asleep. */
async function untilAsleep(): Promise<void> {
  let turns = -1
  let quiet = 0
  await until('all channels to sleep', () => {
    quiet = pollerStats().turns === turns ? quiet + 1 : 0
    turns = pollerStats().turns
    return quiet > 20
  })
}

testOver(
  RING_DRIVER_LISTS,
  'a sender that sleeps until there is room is woken by the room',
  async (t, world) => {
    const [a, b] = await world.openPair({}, { progress: 'manual' })
    let answers = 0
    b.setHandler(ANSWER, () => void answers++)
    b.setHandler(ECHO, () => {})
    let echoed = 0
    a.setHandler(ECHO, message => {
      echoed++
      message.replyMedium(ANSWER, new Uint8Array(message.word(0)), 1)
    })
    for (const size of FULL) t.equal(b.request(0, ECHO, size), OK)
    await until('the answers', () => echoed === FULL.length)
    t.equal(a.request(0, ECHO), NO_RESOURCE)
    const ready = a.ready(0)
    await untilAsleep()
    t.equal(b.poll(), FULL.length)
    t.equal(answers, FULL.length)
    await withWatchdog('readiness', ready)
    t.equal(a.request(0, ECHO), OK)
  },
)

testOver(RING_DRIVER_LISTS, 'a refusal without a waiter keeps no endpoint awake', async (t, world) => {
  const [a, b] = await world.openPair({}, { progress: 'manual' })
  b.setHandler(ECHO, () => {})
  const payload = new Uint8Array(60_000)
  while (a.requestMedium(0, ECHO, payload) === OK) {}
  t.equal(a.requestMedium(0, ECHO, payload), NO_RESOURCE)
  await pollUntil('an empty queue', [b], () => a.stats().peers[0]?.outstanding === 0)
  await untilAsleep()
  t.equal(a.requestMedium(0, ECHO, payload), OK)
})
