/** Starts the halves of contestants as processes, and exchanges questions and answers with them. */
import { ChildProgram } from '../fastsockets/cli/child-program.ts'
import type { Contestant, Role } from './contestants/contestant.ts'
import type {
  Asked,
  Counted,
  Failed,
  Memory,
  OfThreads,
  Question,
  Served,
  Streamed,
  Usage,
} from './half-questions.ts'
import { FAST_FROM_THE_START } from './half-settings.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import { measuredEnvironment } from './measured-environment.ts'

const PROGRAM = new URL('./programs/half.js', import.meta.url)
/** Longer than the answer to any question of a suite takes on a slow machine. */
const TIMEOUT_MS = 120_000

export class Half {
  readonly #program: ChildProgram
  readonly #name: string

  static start(
    contestant: Contestant,
    role: Role,
    settings: NodeJS.ProcessEnv = {},
    via: readonly string[] = [],
  ): Half {
    const env = {
      ...measuredEnvironment(contestant.relinked.includes(role)),
      ...FAST_FROM_THE_START,
      ...settings,
    }
    const name = `the ${role} half of ${contestant.name}`
    return new Half(name, ChildProgram.start(name, PROGRAM, [contestant.name], env, via))
  }

  private constructor(name: string, program: ChildProgram) {
    this.#name = name
    this.#program = program
  }

  async ask(question: Question & { ask: 'serve' }): Promise<Served>
  async ask(question: Question & { ask: 'pingPong' | 'connect' | 'heldRoundTrips' }): Promise<Counted>
  async ask(question: Question & { ask: 'stream' }): Promise<Streamed>
  async ask(question: Question & { ask: 'usage' }): Promise<Usage>
  async ask(question: Question & { ask: 'memory' }): Promise<Memory>
  async ask(question: Asked & { ask: 'threads' }): Promise<OfThreads>
  async ask(question: Asked): Promise<object>
  async ask(question: Asked): Promise<object> {
    this.#program.send(question)
    const answer = await this.#program.receive<object | Failed>(TIMEOUT_MS)
    if ('error' in answer) throw new Error(`${this.#name}, asked to ${question.ask}: ${answer.error}`)
    return answer
  }

  /** The same of each thread that it has started, or of the first `count`, at the same time. */
  async askThreads(question: Question & { ask: 'pingPong' }, count?: number): Promise<readonly Counted[]>
  async askThreads(question: Question): Promise<readonly object[]>
  async askThreads(question: Question, count?: number): Promise<readonly object[]> {
    return (await this.ask({ ask: 'threads', question, ...(count !== undefined && { count }) })).answers
  }

  async stop(): Promise<void> {
    await this.#program.stop()
  }

  kill(): void {
    this.#program.kill()
  }
}

/** The processes of one contestant: client halves, and the server half unless its client has a partner of its own. */
export interface Group {
  readonly clients: readonly Half[]
  readonly halves: readonly Half[]
  /** The address to `dial`. */
  readonly address: string
}

export interface Pair {
  readonly client: Half
  readonly halves: readonly Half[]
}

/** Starts a server half that serves, and `count` client halves that have not dialed; ends all afterwards. */
export async function withUnconnected<T>(
  contestant: Contestant,
  count: number,
  use: (group: Group) => Promise<T>,
  settings: NodeJS.ProcessEnv = {},
): Promise<T> {
  const server = contestant.partner === 'own' ? undefined : Half.start(contestant, 'server', settings)
  const clients = Array.from({ length: count }, () => Half.start(contestant, 'client', settings))
  const halves = server === undefined ? clients : [server, ...clients]
  try {
    const address =
      server === undefined ? await contestant.serve() : (await server.ask({ ask: 'serve' })).address
    const result = await use({ clients, halves, address })
    await Promise.all(halves.map(half => half.stop()))
    return result
  } catch (error) {
    for (const half of halves) half.kill()
    throw error
  }
}

/** The same, with connected clients, which close their connections at the end. */
export async function withClients<T>(
  contestant: Contestant,
  count: number,
  use: (group: Group) => Promise<T>,
  settings: NodeJS.ProcessEnv = {},
): Promise<T> {
  return await withUnconnected(
    contestant,
    count,
    async group => {
      const { clients, address } = group
      await Promise.all(clients.map(client => client.ask({ ask: 'dial', address })))
      const result = await use(group)
      await Promise.all(clients.map(client => client.ask({ ask: 'close' })))
      return result
    },
    settings,
  )
}

/** `settings` of the environment are for both. */
export async function withPair<T>(
  contestant: Contestant,
  use: (pair: Pair) => Promise<T>,
  settings: NodeJS.ProcessEnv = {},
): Promise<T> {
  return await withClients(
    contestant,
    1,
    ({ clients: [client], halves }) => {
      if (client === undefined) throw new Error('there is no client')
      return use({ client, halves })
    },
    settings,
  )
}

/** `count` pairs at the same time; `use` is called with their clients. */
export async function withPairs<T>(
  contestant: Contestant,
  count: number,
  use: (clients: readonly Half[]) => Promise<T>,
  settings: NodeJS.ProcessEnv = {},
  open: readonly Half[] = [],
): Promise<T> {
  if (open.length === count) return await use(open)
  return await withPair(
    contestant,
    ({ client }) => withPairs(contestant, count, use, settings, [...open, client]),
    settings,
  )
}

/** CPU time of processes so far. */
export async function cpuUsOf(halves: readonly Half[]): Promise<number> {
  const usages = await Promise.all(halves.map(half => half.ask({ ask: 'usage' })))
  return usages.reduce((sum, { cpuUs }) => sum + cpuUs, 0)
}

export function decodeLatencies(counted: Counted): LatencyHistogram {
  return LatencyHistogram.decode(counted.latencies)
}
