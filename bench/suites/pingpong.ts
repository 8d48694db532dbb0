import { contestantsFor } from '../contestants.ts'
import { decodeLatencies, withPair } from '../half.ts'
import { sizeText } from '../quantity.ts'
import { measureInRounds } from '../rounds.ts'
import { ladderOf, timesOf } from '../sizes.ts'
import type { Sample, Suite } from '../suite.ts'
import { warmUp, workloadsOf } from '../warm-up.ts'

export const pingpong: Suite = {
  name: 'pingpong',
  what: 'round trips, by message size',
  quickSeconds: 5,
  run: async context => {
    const contestants = await contestantsFor(context, 'pingPong')
    const sizeMax = Math.max(...ladderOf(context))
    for (const contestant of contestants) {
      if (ladderOf(context, contestant).includes(sizeMax)) continue
      context.skip(contestant.name, `it carries messages of up to ${sizeText(contestant.sizeMax ?? 0)} only`)
    }
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () =>
        withPair(contestant, async ({ client }) => {
          const samples: Sample[] = []
          const sizes = ladderOf(context, contestant)
          await warmUp(context, client, workloadsOf('pingPong', sizes))
          for (const size of sizes) {
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
