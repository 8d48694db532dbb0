import type { Contestant } from '../contestants/contestant.ts'
import { contestantsFor, type Objection } from '../contestants.ts'
import { cpuUsOf, withUnconnected } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { LARGE, SMALL } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

const MEBI = 1024 * 1024
const MILLION = 1e6
const GIGA = 1e9
const US_PER_S = 1e6

const NOT_WATCHED: Objection = ({ name }) =>
  name === 'c-limit' ? 'the CPU time of its processes is not watched' : undefined

export const cpu: Suite = {
  name: 'cpu',
  what: 'CPU seconds of both processes for a million messages, and for a gigabyte',
  quickSeconds: 5,
  run: async context => {
    const contestants = await contestantsFor(context, 'stream', NOT_WATCHED)
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: async () => {
        const samples: Sample[] = []
        for (const size of context.isQuick ? [LARGE] : [SMALL, LARGE, MEBI]) {
          samples.push(await measure(context, contestant, size))
        }
        return samples
      },
    }))
    return await measureInRounds(context, 'cpu', trials)
  },
}

/**
 * From before the halves know each other until they have parted: a server that polls answers no questions in between.
 */
async function measure(context: SuiteContext, contestant: Contestant, size: number): Promise<Sample> {
  const times = context.isQuick ? { warmUpMs: 0, ms: 50 } : { warmUpMs: 0, ms: 700 }
  return await withUnconnected(contestant, 1, async ({ clients: [client], halves, address }) => {
    if (client === undefined) throw new Error('there is no client')
    // The call starts a contestant's own partner: CPU time of the start must not count.
    const isOwn = contestant.partner === 'own'
    if (isOwn) await client.ask({ ask: 'dial', address })
    const before = await cpuUsOf(halves)
    if (!isOwn) await client.ask({ ask: 'dial', address })
    const { bytesInAll } = await client.ask({ ask: 'stream', size, ...times })
    const own = await cpuUsOf([client])
    await client.ask({ ask: 'close' })
    const others = halves.filter(half => half !== client)
    const seconds = (own + (await cpuUsOf(others)) - before) / US_PER_S
    const parameters = { size }
    return size === SMALL
      ? {
          parameters,
          metric: 'cpuPerMillionMessages',
          unit: 's',
          better: 'lower',
          value: seconds / (bytesInAll / size / MILLION),
        }
      : {
          parameters,
          metric: 'cpuPerGigabyte',
          unit: 's',
          better: 'lower',
          value: seconds / (bytesInAll / GIGA),
        }
  })
}
