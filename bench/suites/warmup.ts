/**
 * The rate of a program in each of its first seconds, while V8 compiles. It matters for programs that end after
 * seconds, not for servers that run for hours. All other suites measure warm programs.
 */
import type { Contestant } from '../contestants/contestant.ts'
import { contestantsFor, type Objection } from '../contestants.ts'
import { decodeLatencies, type Half, withClients, withPair, withPairs } from '../half.ts'
import type { Question } from '../half-questions.ts'
import { AS_USERS_START } from '../half-settings.ts'
import { measureInRounds } from '../rounds.ts'
import { SMALL } from '../sizes.ts'
import type { Sample, Suite, SuiteContext } from '../suite.ts'

const CROWD = 8
const QUICK_CROWD = 2
const SECONDS = 8
const QUICK_SECONDS = 1
/** Of a "second" of a quick run, which is there for its shape. */
const QUICK_MS = 30

const BYSTANDER: Objection = ({ name }) =>
  name === 'net-relinked' || name === 'net-tcp' ? undefined : 'only plain and relinked programs are watched'

export const warmup: Suite = {
  name: 'warmup',
  what: 'cold programs, second by second: connections, 64 B round trips of 8 clients with a server, and of 8 pairs',
  quickSeconds: 3,
  run: async context => {
    const contestants = await contestantsFor(context, 'connect', BYSTANDER)
    const trials = contestants.map(contestant => ({
      contestant: contestant.name,
      measure: () => measure(contestant, context),
    }))
    return await measureInRounds(context, 'warmup', trials)
  },
}

async function measure(contestant: Contestant, context: SuiteContext): Promise<Sample[]> {
  const times = { warmUpMs: 0, ms: context.isQuick ? QUICK_MS : 1000 }
  const crowd = context.isQuick ? QUICK_CROWD : CROWD
  const connect: Question & { ask: 'connect' } = { ask: 'connect', ...times }
  const pingPong: Question & { ask: 'pingPong' } = { ask: 'pingPong', size: SMALL, ...times }
  const observe = (metric: string, clients: readonly Half[], question: typeof connect | typeof pingPong) =>
    observeSeconds(metric, clients, question, context.isQuick ? QUICK_SECONDS : SECONDS)
  return [
    ...(await withPair(
      contestant,
      ({ client }) => observe('connections', [client], connect),
      AS_USERS_START,
    )),
    ...(await withClients(
      contestant,
      crowd,
      ({ clients }) => observe('tripsOfClients', clients, pingPong),
      AS_USERS_START,
    )),
    ...(await withPairs(
      contestant,
      crowd,
      clients => observe('tripsOfPairs', clients, pingPong),
      AS_USERS_START,
    )),
  ]
}

/** The rate of all clients together in each second from now on. */
async function observeSeconds(
  metric: string,
  clients: readonly Half[],
  question: Question & { ask: 'connect' | 'pingPong' },
  seconds: number,
): Promise<Sample[]> {
  const samples: Sample[] = []
  for (let second = 1; second <= seconds; second++) {
    const all = await Promise.all(clients.map(client => client.ask(question)))
    const rates = all.map(counted => decodeLatencies(counted).count / (counted.ms / 1000))
    const value = rates.reduce((sum, rate) => sum + rate, 0)
    samples.push({ parameters: { second }, metric, unit: '1/s', better: 'higher', value })
  }
  return samples
}
