import type { Contestant } from '../contestants/contestant.ts'
import { contestantsFor, OWN_PARTNER, POLLS } from '../contestants.ts'
import { type Half, withPair, withUnconnected } from '../half.ts'
import { measureInRounds } from '../rounds.ts'
import { SMALL } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

const TALK = { warmUpMs: 0, ms: 30 } as const

export const memory: Suite = {
  name: 'memory',
  what: 'memory of both sides for a connection, and for a peer; that of the kernel is not in it',
  quickSeconds: 4,
  run: async context => {
    const contestants = await contestantsFor(context, 'pingPong', POLLS, OWN_PARTNER)
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: async () => {
        const samples = [await perPeer(context, contestant)]
        if (contestant.abilities.includes('hold')) samples.push(await perConnection(context, contestant))
        return samples.filter(sample => isVisible(context, contestant, sample))
      },
    }))
    return await measureInRounds(context, 'memory', trials)
  },
}

/** Memory that two running processes need for their connections to each other. */
async function perPeer(context: SuiteContext, contestant: Contestant): Promise<Sample> {
  const peers = context.isQuick ? 2 : 4
  return await withUnconnected(contestant, peers, async ({ clients, halves, address }) => {
    const before = await bytesOf(halves)
    await Promise.all(clients.map(client => client.ask({ ask: 'dial', address })))
    await Promise.all(clients.map(client => client.ask({ ask: 'pingPong', size: SMALL, ...TALK })))
    const value = ((await bytesOf(halves)) - before) / peers
    await Promise.all(clients.map(client => client.ask({ ask: 'close' })))
    return { parameters: { peers }, metric: 'bytesPerPeer', unit: 'B', better: 'lower', value }
  })
}

async function perConnection(context: SuiteContext, contestant: Contestant): Promise<Sample> {
  const connections = context.isQuick ? 200 : 2000
  return await withPair(contestant, async ({ client, halves }) => {
    const hold = async (count: number): Promise<void> => {
      await client.ask({ ask: 'hold', count })
      await client.ask({ ask: 'heldRoundTrips', ...TALK })
    }
    // One-time allocations for the first connection are already made.
    await hold(100)
    await client.ask({ ask: 'release' })
    const before = await bytesOf(halves)
    await hold(connections)
    const value = ((await bytesOf(halves)) - before) / connections
    return { parameters: { connections }, metric: 'bytesPerConnection', unit: 'B', better: 'lower', value }
  })
}

/** Heap sizes vary between readings: the difference for a small cost may be negative, and is then left out. */
function isVisible(context: SuiteContext, { name }: Contestant, { metric, value }: Sample): boolean {
  if (value > 0) return true
  context.skip(name, `its ${metric} is too little to be seen`)
  return false
}

async function bytesOf(halves: readonly Half[]): Promise<number> {
  const all = await Promise.all(halves.map(half => half.ask({ ask: 'memory' })))
  return all.reduce((sum, { bytes }) => sum + bytes, 0)
}
