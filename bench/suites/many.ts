import { readFileSync } from 'node:fs'
import { contestantsFor } from '../contestants.ts'
import { decodeLatencies, withPair } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { timesOf } from '../sizes.ts'
import type { Sample, Suite } from '../suite.ts'
import { warmUpMsOf } from '../warm-up.ts'

/** Descriptors of one half besides its sockets. */
const OTHER_DESCRIPTORS = 100

export const many: Suite = {
  name: 'many',
  what: '64 B round trips over 1 to 10 000 sockets between two processes, 32 under way',
  quickSeconds: 3,
  run: async context => {
    const contestants = await contestantsFor(context, 'hold')
    const wanted = context.isQuick ? [1, 100] : [1, 10, 100, 1000, 10_000]
    const most = descriptorsMax() - OTHER_DESCRIPTORS
    const counts = wanted.filter(count => count <= most)
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () =>
        withPair(contestant, async ({ client }) => {
          const samples: Sample[] = []
          await client.ask({ ask: 'hold', count: 1 })
          await client.ask({ ask: 'heldRoundTrips', warmUpMs: 0, ms: warmUpMsOf(context) })
          await client.ask({ ask: 'release' })
          for (const sockets of counts) {
            await client.ask({ ask: 'hold', count: sockets })
            const counted = await client.ask({ ask: 'heldRoundTrips', ...timesOf(context) })
            await client.ask({ ask: 'release' })
            const latencies = decodeLatencies(counted)
            const parameters = { sockets }
            const rate = latencies.count / (counted.ms / 1000)
            samples.push({ parameters, metric: 'rate', unit: '1/s', better: 'higher', value: rate })
            const value = latencies.percentiles().p50
            samples.push({ parameters, metric: 'roundTrip', unit: 'us', better: 'lower', value, latencies })
          }
          return samples
        }),
    }))
    for (const count of wanted.filter(count => count > most)) {
      for (const { name } of contestants) {
        context.skip(name, `${count} sockets are more than a process may have open (ulimit -n)`)
      }
    }
    return await measureInRounds(context, 'many', trials)
  },
}

/** Node raises its soft limit to the hard one. */
function descriptorsMax(): number {
  const limits = readFileSync('/proc/self/limits', 'utf8')
  const soft = /^Max open files +(\S+)/m.exec(limits)?.[1]
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}
