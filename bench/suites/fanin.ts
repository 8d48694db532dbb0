import { roundTripsTogether } from '../clients-together.ts'
import type { Contestant } from '../contestants/contestant.ts'
import { contestantsFor, OWN_PARTNER, POLLS } from '../contestants.ts'
import { withClients } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { SMALL, timesOf } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

/** Several processes share a core, and must have become hot all the same. */
const TIMES = { warmUpMs: 600, ms: 500 }

export const fanin: Suite = {
  name: 'fanin',
  what: '64 B round trips of many client processes with one server',
  quickSeconds: 3,
  run: async context => {
    const contestants = await contestantsFor(context, 'pingPong', POLLS, OWN_PARTNER)
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: async () => {
        const samples: Sample[] = []
        for (const clients of context.isQuick ? [2] : [1, 2, 4, 8]) {
          samples.push(...(await measure(context, contestant, clients)))
        }
        return samples
      },
    }))
    return await measureInRounds(context, 'fanin', trials)
  },
}

async function measure(context: SuiteContext, contestant: Contestant, count: number): Promise<Sample[]> {
  const times = context.isQuick ? timesOf(context) : TIMES
  return await withClients(contestant, count, async ({ clients }) => {
    const all = await Promise.all(
      clients.map(client => client.ask({ ask: 'pingPong', size: SMALL, ...times })),
    )
    return roundTripsTogether(all, { clients: count })
  })
}
