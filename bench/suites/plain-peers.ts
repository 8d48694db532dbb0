/**
 * The cost of relinking for a program whose peer is not relinked: a few percent at most, less than the difference
 * between two equal pairs, which depends on their placement by the system. So several pairs of each kind run at the
 * same time, and are measured one after the other within seconds.
 */
import { geometricMean } from 'simple-statistics'
import type { Contestant } from '../contestants/contestant.ts'
import { contestantsFor } from '../contestants.ts'
import { decodeLatencies, type Half, withPair } from '../half.ts'
import type { Counted } from '../half-questions.ts'
import { measureInRounds } from '../rounds.ts'
import { LARGE, SMALL } from '../sizes.ts'
import type { Sample, Suite, SuiteContext, Trial } from '../suite.ts'

interface Scale {
  /** Of each contestant. */
  readonly pairs: number
  /** Of each pair, for each of the questions. */
  readonly turns: number
  /** Before its first turn. */
  readonly firstMs: number
  readonly warmUpMs: number
  readonly ms: number
}

const SCALE: Scale = { pairs: 2, turns: 6, firstMs: 800, warmUpMs: 20, ms: 100 }
const QUICK_SCALE: Scale = { pairs: 1, turns: 1, firstMs: 30, warmUpMs: 10, ms: 30 }

/** Round trips, connections or bytes, and how long they took. */
interface Amount {
  readonly count: number
  readonly ms: number
}

interface Meter {
  readonly metric: string
  readonly unit: string
  readonly better: 'lower' | 'higher'
  readonly parameters: { readonly size?: number; readonly options?: string }
  measure(client: Half, warmUpMs: number, ms: number): Promise<Amount>
  value(amount: Amount): number
}

const timeOfEach = ({ count, ms }: Amount): number => (ms * 1000) / count

const METERS: readonly Meter[] = [
  {
    metric: 'roundTrip',
    unit: 'us',
    better: 'lower',
    parameters: { size: SMALL },
    measure: async (client, warmUpMs, ms) =>
      amountOf(await client.ask({ ask: 'pingPong', size: SMALL, warmUpMs, ms })),
    value: timeOfEach,
  },
  {
    metric: 'rate',
    unit: 'B/s',
    better: 'higher',
    parameters: { size: LARGE },
    measure: async (client, warmUpMs, ms) => {
      const streamed = await client.ask({ ask: 'stream', size: LARGE, warmUpMs, ms })
      return { count: streamed.bytes, ms: streamed.ms }
    },
    value: ({ count, ms }) => count / (ms / 1000),
  },
  {
    metric: 'connection',
    unit: 'us',
    better: 'lower',
    parameters: { options: 'written out' },
    measure: async (client, warmUpMs, ms) => amountOf(await client.ask({ ask: 'connect', warmUpMs, ms })),
    value: timeOfEach,
  },
  {
    metric: 'connection',
    unit: 'us',
    better: 'lower',
    parameters: { options: 'spread' },
    // Last: V8's type feedback for such options would affect the other measurements.
    measure: async (client, warmUpMs, ms) =>
      amountOf(await client.ask({ ask: 'connect', options: 'spread', warmUpMs, ms })),
    value: timeOfEach,
  },
]

export const plainPeers: Suite = {
  name: 'plain-peers',
  what: 'only one side relinked: round trips, a stream, and whole connections of many pairs in turns',
  quickSeconds: 2,
  run: async context => {
    const contestants = await contestantsFor(context, 'takeTurns')
    return await measureInRounds(context, 'plain-peers', together(contestants, context))
  },
}

/** Trials that are measured all at once, when the first of a round is asked for. */
function together(contestants: readonly Contestant[], context: SuiteContext): Trial[] {
  let round: Promise<ReadonlyMap<Contestant, readonly Sample[]>> | undefined
  const asked = new Set<Contestant>()
  return contestants.map(contestant => ({
    contestant: contestant.name,
    measure: async () => {
      if (round === undefined || asked.has(contestant)) {
        asked.clear()
        round = measureAll(contestants, context)
      }
      asked.add(contestant)
      return (await round).get(contestant) ?? []
    },
  }))
}

interface Member {
  readonly contestant: Contestant
  readonly client: Half
}

async function measureAll(
  contestants: readonly Contestant[],
  { isQuick }: SuiteContext,
): Promise<ReadonlyMap<Contestant, readonly Sample[]>> {
  const scale = isQuick ? QUICK_SCALE : SCALE
  const all = Array.from({ length: scale.pairs }, () => contestants).flat()
  return await withMembers(all, async members => {
    const samples = new Map(contestants.map(contestant => [contestant, [] as Sample[]]))
    for (const meter of METERS) {
      const values = await measureInTurns(members, meter, scale)
      for (const [contestant, list] of values) {
        const { metric, unit, better, parameters } = meter
        samples.get(contestant)?.push({ metric, unit, better, parameters, value: geometricMean(list) })
      }
    }
    return samples
  })
}

/** One value for each pair of each contestant, over all turns: a single turn may be stalled by other load. */
async function measureInTurns(
  members: readonly Member[],
  meter: Meter,
  { turns, firstMs, warmUpMs, ms }: Scale,
): Promise<ReadonlyMap<Contestant, readonly number[]>> {
  for (const { client } of members) await meter.measure(client, firstMs, ms)
  const sums = members.map(member => ({ member, count: 0, ms: 0 }))
  for (let turn = 0; turn < turns; turn++) {
    // Forward, then backward: a drift over time affects all pairs alike.
    for (const sum of turn % 2 === 0 ? sums : [...sums].reverse()) {
      const amount = await meter.measure(sum.member.client, warmUpMs, ms)
      sum.count += amount.count
      sum.ms += amount.ms
    }
  }
  const values = new Map<Contestant, number[]>()
  for (const { member, ...sum } of sums) {
    const { contestant } = member
    values.set(contestant, [...(values.get(contestant) ?? []), meter.value(sum)])
  }
  return values
}

/** One connected pair of each in the list, all at the same time. */
async function withMembers<T>(
  contestants: readonly Contestant[],
  use: (members: readonly Member[]) => Promise<T>,
  members: readonly Member[] = [],
): Promise<T> {
  const next = contestants[members.length]
  if (next === undefined) return await use(members)
  return await withPair(next, ({ client }) =>
    withMembers(contestants, use, [...members, { contestant: next, client }]),
  )
}

function amountOf(counted: Counted): Amount {
  return { count: decodeLatencies(counted).count, ms: counted.ms }
}
