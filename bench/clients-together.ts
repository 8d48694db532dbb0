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
 * Of 8 clients: those that share a core must be warm, too. The suite `warmup` measures how long that takes. All clients are
 * there from the beginning, so one warm-up serves all counts; clients that are not asked are idle.
 */
const WARM_UP_MS = 3000
const TIMES = { warmUpMs: 20, ms: 250 }
const COUNTS = [1, 2, 4, 8]
const QUICK_COUNTS = [2]

/** Asks the first `count` clients for round trips, all at the same time. */
export type AskClients = (count: number, times: Times) => Promise<readonly Counted[]>

/** Runs `use` with that many connected clients. */
export type WithClients = (
  contestant: Contestant,
  count: number,
  use: (ask: AskClients) => Promise<Sample[]>,
) => Promise<Sample[]>

/** The sum of their rates, and the round trips of all. */
function roundTripsTogether(all: readonly Counted[], parameters: Parameters): Sample[] {
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

/** 1 to 8 clients of each contestant that can have more than one. `parameter`: what the report calls their number. */
export async function measureClients(
  context: SuiteContext,
  suite: string,
  parameter: string,
  withClients: WithClients,
): Promise<Result[]> {
  const contestants = await contestantsFor(context, 'pingPong', POLLS, OWN_PARTNER)
  const trials = contestants.map(contestant => ({
    contestant: contestant.name,
    measure: () => {
      const counts = context.isQuick ? QUICK_COUNTS : COUNTS
      const most = Math.max(...counts)
      return withClients(contestant, most, async ask => {
        if (!context.isQuick) await ask(most, { warmUpMs: 0, ms: WARM_UP_MS })
        const samples: Sample[] = []
        for (const count of counts) {
          const all = await ask(count, context.isQuick ? timesOf(context) : TIMES)
          samples.push(...roundTripsTogether(all, { [parameter]: count }))
        }
        return samples
      })
    },
  }))
  return await measureInRounds(context, suite, trials)
}
