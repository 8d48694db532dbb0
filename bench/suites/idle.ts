import { setTimeout as delay } from 'node:timers/promises'
import type { Contestant } from '../contestants/contestant.ts'
import { contestantsFor, type Objection } from '../contestants.ts'
import { cpuUsOf, type Half, withPair } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { SMALL, timesOf } from '../sizes.ts'
import type { Suite } from '../suite.ts'

/** Longer than any contestant spins before it sleeps. */
const SETTLING_MS = 250
const QUICK_SETTLING_MS = 50
const CONNECTIONS = 100

const POLLS_ALWAYS: Objection = ({ polls }) =>
  polls ? 'it polls: each half takes its core, whether anything happens or not' : undefined

export const idle: Suite = {
  name: 'idle',
  what: 'CPU time of two connected processes when nothing happens',
  quickSeconds: 4,
  run: async context => {
    const contestants = await contestantsFor(context, 'pingPong', POLLS_ALWAYS)
    const ms = context.isQuick ? 100 : 800
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () =>
        withPair(contestant, async ({ client, halves }) => {
          const connections = await warmUp(contestant, client, timesOf(context).ms)
          await delay(context.isQuick ? QUICK_SETTLING_MS : SETTLING_MS)
          const startMs = performance.now()
          const before = await cpuUsOf(halves)
          await delay(ms)
          const spent = (await cpuUsOf(halves)) - before
          const value = spent / ((performance.now() - startMs) / 1000)
          return [
            { parameters: { connections }, metric: 'cpu', unit: 'us/s', better: 'lower' as const, value },
          ]
        }),
    }))
    return await measureInRounds(context, 'idle', trials)
  },
}

/** Each pair exchanges a few messages, then is idle. Resolves to the number of open connections. */
async function warmUp(contestant: Contestant, client: Half, ms: number): Promise<number> {
  await client.ask({ ask: 'pingPong', size: SMALL, warmUpMs: 0, ms })
  if (!contestant.abilities.includes('hold')) return 1
  await client.ask({ ask: 'hold', count: CONNECTIONS })
  await client.ask({ ask: 'heldRoundTrips', warmUpMs: 0, ms })
  return CONNECTIONS
}
