import { roundTripsTogether } from '../clients-together.ts'
import type { Contestant } from '../contestants/contestant.ts'
import { contestantsFor, OWN_PARTNER, POLLS } from '../contestants.ts'
import { withUnconnected } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { SMALL, timesOf } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

/** Each thread compiles for itself, and several share a core. */
const TIMES = { warmUpMs: 600, ms: 500 }
/** Threads that all start at once may keep the server from greeting in time; how fast they connect is not measured here. */
const PATIENCE = { FASTSOCKETS_GREETING_TIMEOUT_MS: '2000' }

export const threads: Suite = {
  name: 'threads',
  what: '64 B round trips of many worker threads of one client process with one server',
  quickSeconds: 3,
  run: async context => {
    const contestants = await contestantsFor(context, 'pingPong', POLLS, OWN_PARTNER)
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: async () => {
        const samples: Sample[] = []
        for (const count of context.isQuick ? [2] : [1, 2, 4, 8]) {
          samples.push(...(await measure(context, contestant, count)))
        }
        return samples
      },
    }))
    return await measureInRounds(context, 'threads', trials)
  },
}

/** The process's main thread only hands on what it is asked; each of the threads has a connection of its own. */
async function measure(context: SuiteContext, contestant: Contestant, count: number): Promise<Sample[]> {
  const times = context.isQuick ? timesOf(context) : TIMES
  return await withUnconnected(
    contestant,
    1,
    async ({ clients: [client], address }) => {
      if (client === undefined) throw new Error('there is no client')
      await client.ask({ ask: 'startThreads', count })
      await client.askThreads({ ask: 'dial', address })
      const all = await client.askThreads({ ask: 'pingPong', size: SMALL, ...times })
      await client.askThreads({ ask: 'close' })
      return roundTripsTogether(all, { threads: count })
    },
    PATIENCE,
  )
}
