import { availableParallelism } from 'node:os'
import { contestantsFor, OWN_PARTNER, POLLS } from '../contestants.ts'
import { decodeLatencies, type Half, withPairs } from '../half.ts'
import { PATIENCE } from '../half-settings.ts'
import { measureInRounds } from '../rounds.ts'
import { LARGE, SMALL, timesOf } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

const PAIRS_MIN = 8
/** Each process has a small share of a core, and must have become warm all the same; the suite `warmup` shows the way there. */
const TRIP_TIMES = { warmUpMs: 6000, ms: 700 }
const STREAM_TIMES = { warmUpMs: 1500, ms: 500 }

export const oversubscribed: Suite = {
  name: 'oversubscribed',
  what: 'pairs of busy processes, twice as many processes as cores and at least 8 pairs: all together',
  quickSeconds: 4,
  run: async context => {
    const contestants = await contestantsFor(context, 'stream', POLLS, OWN_PARTNER)
    const cores = availableParallelism()
    const pairs = context.isQuick ? Math.floor(cores / 2) + 1 : Math.max(PAIRS_MIN, cores)
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () => withPairs(contestant, pairs, clients => measure(context, clients), PATIENCE),
    }))
    return await measureInRounds(context, 'oversubscribed', trials)
  },
}

async function measure(context: SuiteContext, clients: readonly Half[]): Promise<Sample[]> {
  const quick = context.isQuick ? timesOf(context) : undefined
  const parameters = (size: number) => ({ pairs: clients.length, size })
  const trips = await Promise.all(
    clients.map(client => client.ask({ ask: 'pingPong', size: SMALL, ...(quick ?? TRIP_TIMES) })),
  )
  const streams = await Promise.all(
    clients.map(client => client.ask({ ask: 'stream', size: LARGE, ...(quick ?? STREAM_TIMES) })),
  )
  const tripRate = sum(trips.map(counted => decodeLatencies(counted).count / (counted.ms / 1000)))
  const byteRate = sum(streams.map(({ bytes, ms }) => bytes / (ms / 1000)))
  return [
    { parameters: parameters(SMALL), metric: 'roundTrips', unit: '1/s', better: 'higher', value: tripRate },
    { parameters: parameters(LARGE), metric: 'rate', unit: 'B/s', better: 'higher', value: byteRate },
  ]
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
