/**
 * Two programs do to their connections what a random schedule says: write, pause, end, destroy, reset. Plain and relinked, both
 * sides see the same events in the same order.
 *
 * All connections take their steps together, and a step begins once both programs have been quiet for a while: so the order of
 * events is that of the schedule. What differs is run again, alone: it counts if no relinked run saw what a plain one did.
 */
import type { ForkOptions } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { clientSide } from '../support/placement.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { program, relinked } from '../support/relinked.ts'
import { startsFast } from '../support/start-mode.ts'
import { eventually } from '../support/until.ts'
import type { Act, Answer, Order, Place } from './schedule.ts'

const SCHEDULES = Number(process.env.FASTSOCKETS_SCHEDULES || 150)
const STEPS_MAX = 6
const QUIET_MS = 80
const RUNS_AGAIN = 4
/** Into a receive buffer fits each but the last; nothing takes that whole. */
const LENGTHS = [1, 100, 20_000, 60_000, 20_000_000] as const
const SIDES = ['client', 'server'] as const

type Side = (typeof SIDES)[number]
interface Step {
  readonly side: Side
  readonly acts: readonly Act[]
}
interface Schedule {
  readonly number: number
  readonly allowHalfOpen: boolean
  readonly steps: readonly Step[]
}
/** What each connection has seen in each step: the client's, and the server's. */
type History = Map<number, string[]>

/** Those of one side that has something to say, with their teardown, as bug reports of other runtimes have it. */
const TEARDOWNS: readonly (readonly Step[])[] = [
  [
    { side: 'server', acts: [['pause']] },
    { side: 'client', acts: [['end', 60_000]] },
    { side: 'server', acts: [['destroy']] },
  ],
  [
    { side: 'server', acts: [['pause']] },
    { side: 'client', acts: [['write', 20_000_000]] },
    { side: 'server', acts: [['reset']] },
  ],
  [
    { side: 'server', acts: [['write', 8_000_000]] },
    { side: 'server', acts: [['destroy']] },
  ],
  [
    { side: 'server', acts: [['end', 3]] },
    { side: 'client', acts: [['string', 4]] },
  ],
  [
    { side: 'server', acts: [['destroy']] },
    { side: 'client', acts: [['write', 1_000_000]] },
  ],
  [
    { side: 'server', acts: [['pause']] },
    { side: 'client', acts: [['write', 20_000_000]] },
    { side: 'server', acts: [['destroySoon']] },
  ],
  [{ side: 'client', acts: [['end', 100], ['reset']] }],
]

function scheduleOf(number: number, random: Random): Schedule {
  const simple = (what: string) => (): Act => [what]
  const kinds: readonly [() => Act, ...(() => Act)[]] = [
    () => ['write', random.pick(LENGTHS)],
    () => ['string', random.pick([1, 100, 20_000])],
    () => ['end', random.pick([0, ...LENGTHS])],
    ...['pause', 'pause', 'resume', 'destroy', 'reset', 'destroySoon', 'cork'].map(simple),
  ]
  const steps = Array.from({ length: random.within(1, STEPS_MAX) }, () => ({
    side: random.pick(SIDES),
    // One a turn: what is done behind an end or a write within its turn, the kernel and a ring need not see in the same order.
    acts: [random.pick(kinds)()],
  }))
  return { number, allowHalfOpen: random.chance(0.5), steps }
}

class Pair {
  readonly #sides: Readonly<Record<Side, Child>>

  constructor(t: Test, isRelinked: boolean) {
    const options = isRelinked ? relinked() : {}
    const start = (options: ForkOptions): Child => new Child(t, program('schedule'), [], options)
    this.#sides = { client: start(clientSide(options)), server: start(options) }
  }

  async connect(isOnPath: boolean, allowHalfOpen: boolean, schedules: readonly Schedule[]): Promise<void> {
    for (const side of SIDES) await this.#sides[side].receive()
    const { place } = await this.#ask('server', { listen: { isOnPath, allowHalfOpen } })
    // The first one alone: the others find a channel.
    await this.#open([{ place: place as Place, number: 0, allowHalfOpen }], 1)
    const rest = schedules.map(({ number, allowHalfOpen }) => ({
      place: place as Place,
      number,
      allowHalfOpen,
    }))
    await this.#open(rest, 1 + rest.length)
    await this.#quiet()
  }

  async step(schedules: readonly Schedule[], index: number): Promise<void> {
    for (const side of SIDES) {
      const step = schedules
        .filter(({ steps }) => steps[index]?.side === side)
        .map(({ number, steps }) => ({ number, acts: steps[index]?.acts ?? [] }))
      this.#sides[side].send({ step } satisfies Order)
    }
    await this.#quiet()
  }

  async seen(history: History): Promise<readonly string[]> {
    const of = await Promise.all(SIDES.map(side => this.#ask(side, { ask: 'seen' })))
    for (const [number, steps] of history) {
      const told = of.map(({ seen }) => seen?.find(([one]) => one === number)?.[1].join(', '))
      steps.push(`client: ${told[0]}; server: ${told[1]}`)
    }
    return [...new Set(of.flatMap(({ transports = [] }) => transports))]
  }

  async end(): Promise<void> {
    await Promise.all(SIDES.map(side => this.#sides[side].kill()))
  }

  #ask(side: Side, order: Order): Promise<Answer> {
    return this.#sides[side].ask<Answer>(order)
  }

  async #open(open: NonNullable<Order['open']>, count: number): Promise<void> {
    this.#sides.client.send({ open } satisfies Order)
    for (const side of SIDES)
      await eventually('connections', async () => (await this.#ask(side, { ask: 'idle' })).count === count)
  }

  async #quiet(): Promise<void> {
    const isQuiet = async (): Promise<boolean> => {
      const idle = await Promise.all(SIDES.map(side => this.#ask(side, { ask: 'idle' })))
      return idle.every(({ idleMs = 0 }) => idleMs > QUIET_MS)
    }
    // Twice, as a process that had no core was quiet, too.
    await eventually('silence', async () => (await isQuiet()) && (await sleep(5, true)) && (await isQuiet()))
  }
}

async function run(
  t: Test,
  kind: { readonly isOnPath: boolean; readonly allowHalfOpen: boolean },
  schedules: readonly Schedule[],
  isRelinked: boolean,
): Promise<History> {
  const pair = new Pair(t, isRelinked)
  await pair.connect(kind.isOnPath, kind.allowHalfOpen, schedules)
  const history: History = new Map(schedules.map(({ number }) => [number, []]))
  const transports = await pair.seen(history)
  const stepCount = Math.max(...schedules.map(({ steps }) => steps.length))
  for (let index = 0; index < stepCount; index++) {
    await pair.step(schedules, index)
    await pair.seen(history)
  }
  await pair.end()
  if (isRelinked && startsFast) t.strictSame(transports, ['shm'])
  return history
}

for (const isOnPath of [false, true])
  for (const allowHalfOpen of [false, true])
    t.test(
      `${isOnPath ? 'unix paths' : 'addresses'}, a server that ${allowHalfOpen ? 'allows' : 'ends'} half-open ones`,
      async t => {
        const random = seededRandom(t)
        const fixed = TEARDOWNS.map((steps, i) => ({ number: i + 1, allowHalfOpen, steps }))
        const drawn = Array.from({ length: SCHEDULES }, (_, i) => scheduleOf(fixed.length + i + 1, random))
        const schedules = [...fixed, ...drawn]
        const kind = { isOnPath, allowHalfOpen }
        const plain = [await run(t, kind, schedules, false)]
        const fast = [await run(t, kind, schedules, true)]
        const of = (histories: readonly History[], { number }: Schedule): string[] =>
          histories.flatMap(history => history.get(number)?.join('\n') ?? [])
        const isDifferent = (schedule: Schedule): boolean => {
          const known = of(plain, schedule)
          return of(fast, schedule).every(seen => !known.includes(seen))
        }
        let different = schedules.filter(isDifferent)
        t.comment(`${schedules.length} schedules, ${different.length} of them run again`)
        for (let i = 0; i < RUNS_AGAIN && different.length > 0; i++) {
          plain.push(await run(t, kind, different, false))
          fast.push(await run(t, kind, different, true))
          different = different.filter(isDifferent)
        }
        for (const schedule of different)
          t.strictSame(of(fast, schedule).at(-1), of(plain, schedule).at(-1), JSON.stringify(schedule))
        t.equal(different.length, 0)
      },
    )
