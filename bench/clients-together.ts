/** Measures several clients of one server at the same time. */
import type { Contestant } from './contestants/contestant.ts'
import { contestantsFor, OWN_PARTNER, POLLS } from './contestants.ts'
import { decodeLatencies } from './half.ts'
import type { Counted, Times } from './half-questions.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import type { Parameters, Result } from './result.ts'
import { measureInRounds } from './rounds.ts'
import { timesOf } from './sizes.ts'
import type { Sample, SuiteContext } from './suite.ts'

/**
 * For each client: several clients that share a core must be warm, too. The suite `warmup` measures how long that
 * takes.
 */
const WARM_UP_MS = 600
const MS = 500

/** The sum of their rates, and the round trips of all. */
export function roundTripsTogether(all: readonly Counted[], parameters: Parameters): Sample[] {
  const latencies = new LatencyHistogram()
  let rate = 0
  for (const counted of all) {
    const own = decodeLatencies(counted)
    latencies.merge(own)
    rate += own.count / (counted.ms / 1000)
  }
  const value = latencies.percentiles().p50
  return [
    { parameters, metric: 'rate', unit: '1/s', better: 'higher', value: rate },
    { parameters, metric: 'roundTrip', unit: 'us', better: 'lower', value, latencies },
  ]
}

/** `measure` for 1 to 8 clients of each contestant that can have more than one. */
export async function measureClients(
  context: SuiteContext,
  suite: string,
  measure: (contestant: Contestant, count: number, times: Times) => Promise<Sample[]>,
): Promise<Result[]> {
  const contestants = await contestantsFor(context, 'pingPong', POLLS, OWN_PARTNER)
  const trials = contestants.map(contestant => ({
    contestant: contestant.name,
    measure: async () => {
      const samples: Sample[] = []
      for (const count of context.isQuick ? [2] : [1, 2, 4, 8]) {
        const times = context.isQuick ? timesOf(context) : { warmUpMs: count * WARM_UP_MS, ms: MS }
        samples.push(...(await measure(contestant, count, times)))
      }
      return samples
    },
  }))
  return await measureInRounds(context, suite, trials)
}
