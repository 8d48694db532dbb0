import { contestantsFor } from '../contestants.ts'
import { decodeLatencies, withPair } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { ladderOf, timesOf } from '../sizes.ts'
import type { Sample, Suite } from '../suite.ts'

export const pingpong: Suite = {
  name: 'pingpong',
  what: 'round trips, by message size',
  quickSeconds: 6,
  run: async context => {
    const contestants = await contestantsFor(context, 'pingPong')
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () =>
        withPair(contestant, async ({ client }) => {
          const samples: Sample[] = []
          for (const size of ladderOf(context, contestant)) {
            const counted = await client.ask({ ask: 'pingPong', size, ...timesOf(context) })
            const latencies = decodeLatencies(counted)
            const value = latencies.percentiles().p50
            samples.push({
              parameters: { size },
              metric: 'roundTrip',
              unit: 'us',
              better: 'lower',
              value,
              ...(contestant.tellsMeans ? {} : { latencies }),
            })
          }
          return samples
        }),
    }))
    return await measureInRounds(context, 'pingpong', trials)
  },
}
