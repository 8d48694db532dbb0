import { contestantsFor } from '../contestants.ts'
import { decodeLatencies, withPair } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import type { Suite } from '../suite.ts'

/** V8 takes seconds to compile all that a connection runs through; the suite `warmup` shows the way there. */
const TIMES = { warmUpMs: 2000, ms: 500 }
const QUICK_TIMES = { warmUpMs: 30, ms: 60 }

export const connect: Suite = {
  name: 'connect',
  what: 'connections one after the other, each with a byte to and fro: until one is open, and how many a second',
  quickSeconds: 2,
  run: async context => {
    const contestants = await contestantsFor(context, 'connect')
    const times = context.isQuick ? QUICK_TIMES : TIMES
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () =>
        withPair(contestant, async ({ client }) => {
          const counted = await client.ask({ ask: 'connect', ...times })
          const latencies = decodeLatencies(counted)
          const rate = latencies.count / (counted.ms / 1000)
          return [
            {
              parameters: {},
              metric: 'connection',
              unit: 'us',
              better: 'lower' as const,
              value: latencies.percentiles().p50,
              latencies,
            },
            { parameters: {}, metric: 'rate', unit: '1/s', better: 'higher' as const, value: rate },
          ]
        }),
    }))
    return await measureInRounds(context, 'connect', trials)
  },
}
