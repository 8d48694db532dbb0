import { contestantsFor } from '../contestants.ts'
import { withPair } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { ladderOf, timesOf } from '../sizes.ts'
import type { Sample, Suite } from '../suite.ts'
import { warmUp, workloadsOf } from '../warm-up.ts'

export const stream: Suite = {
  name: 'stream',
  what: "messages one way, by message size; the receiver's rate",
  quickSeconds: 4,
  run: async context => {
    const contestants = await contestantsFor(context, 'stream')
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () =>
        withPair(contestant, async ({ client }) => {
          const samples: Sample[] = []
          const sizes = ladderOf(context)
          await warmUp(context, client, workloadsOf('stream', sizes))
          for (const size of sizes) {
            const { bytes, ms } = await client.ask({ ask: 'stream', size, ...timesOf(context) })
            const value = bytes / (ms / 1000)
            samples.push({ parameters: { size }, metric: 'rate', unit: 'B/s', better: 'higher', value })
          }
          return samples
        }),
    }))
    return await measureInRounds(context, 'stream', trials)
  },
}
