/**
 * `npm run bench`: the promises of the first road, measured against plain `node:net` over TCP in the same run, with the
 * order of the contestants alternating. Medians of five rounds; ratios are the result, absolute times only their parts.
 */
import { loadavg } from 'node:os'
import Table from 'cli-table3'
import { ChildProgram } from '../fastsockets/cli/child-program.ts'
import { plainNodeOptions, relinkedNodeOptions } from '../fastsockets/cli/relink.ts'

const ROUNDS = 5
const TIMEOUT_MS = 120_000
const PEER = new URL('./programs/peer.js', import.meta.url)
const CALLER = new URL('./programs/caller.js', import.meta.url)

type Mode = 'plain' | 'relinked'
/** Which of the two programs is relinked. */
type Contestant = { readonly server: Mode; readonly client: Mode; readonly wire: string }

const PLAIN: Contestant = { server: 'plain', client: 'plain', wire: 'tcp' }
const FAST: Contestant = { server: 'relinked', client: 'relinked', wire: 'shm' }
const ALONE: Contestant = { server: 'plain', client: 'relinked', wire: 'tcp' }

interface Result {
  readonly transport: string
  readonly p50Us?: number
  readonly p99Us?: number
}
interface Received {
  readonly bytes: number
  readonly ms: number
}

interface Suite {
  readonly name: string
  readonly unit: string
  readonly contestant: Contestant
  readonly promise: string
  readonly measure: (contestant: Contestant) => Promise<number>
  /** The promised ratio, contestant to plain. */
  readonly holds: (ratio: number) => boolean
}

const SUITES: readonly Suite[] = [
  {
    name: '64 B echo, round trip p50',
    unit: 'us',
    contestant: FAST,
    promise: 'at most 1/6',
    measure: contestant => call(contestant, 'echo', ['echo', 64, 100_000], result => result.p50Us),
    holds: ratio => ratio <= 1 / 6,
  },
  {
    name: '64 KiB writes one way',
    unit: 'GB/s',
    contestant: FAST,
    promise: 'at least 2',
    measure: contestant => transfer(contestant, 65_536, 3_000_000_000),
    holds: ratio => ratio >= 2,
  },
  {
    name: 'server not relinked: 64 KiB writes',
    unit: 'GB/s',
    contestant: ALONE,
    promise: 'within 3 %',
    measure: contestant => transfer(contestant, 65_536, 3_000_000_000),
    holds: ratio => ratio >= 0.97,
  },
  {
    name: 'server not relinked: connect p50',
    unit: 'us',
    contestant: ALONE,
    promise: 'within 10 %',
    measure: contestant => call(contestant, 'sink', ['connect', 5000], result => result.p50Us),
    holds: ratio => ratio <= 1.1,
  },
]

const before = loadavg()[0] ?? 0
if (before > 0.5) process.stderr.write(`warning: this machine is not quiet (load ${before.toFixed(2)})\n`)
const table = new Table({
  head: ['measurement', 'unit', 'plain', 'relinked', 'ratio', 'promise', ''],
  colAligns: ['left', 'left', 'right', 'right', 'right', 'left', 'left'],
  style: { head: [], border: [], compact: true },
})
for (const suite of SUITES) table.push(await run(suite))
process.stdout.write(`${table.toString()}\n`)

async function run(suite: Suite): Promise<string[]> {
  const plain: number[] = []
  const contestant: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    process.stderr.write(`${suite.name}: round ${round + 1} of ${ROUNDS}\n`)
    const order = round % 2 === 0 ? [plain, contestant] : [contestant, plain]
    for (const results of order) {
      results.push(await suite.measure(results === plain ? PLAIN : suite.contestant))
    }
  }
  const ratio = median(contestant) / median(plain)
  return [
    suite.name,
    suite.unit,
    median(plain).toFixed(2),
    median(contestant).toFixed(2),
    ratio.toFixed(3),
    suite.promise,
    suite.holds(ratio) ? 'holds' : 'MISSED',
  ]
}

async function call(
  contestant: Contestant,
  behaviour: string,
  args: readonly (string | number)[],
  pick: (result: Result) => number | undefined,
): Promise<number> {
  return await withServer(contestant, behaviour, async (_server, port) => {
    const result = await callOnce(contestant, port, args)
    return pick(result) ?? Number.NaN
  })
}

/** Rate at the receiver, in GB/s. */
async function transfer(contestant: Contestant, size: number, bytes: number): Promise<number> {
  return await withServer(contestant, 'sink', async (server, port) => {
    await callOnce(contestant, port, ['stream', size, bytes])
    const received = await server.receive<Received>(TIMEOUT_MS)
    return received.bytes / received.ms / 1e6
  })
}

async function withServer<T>(
  contestant: Contestant,
  behaviour: string,
  use: (server: ChildProgram, port: number) => Promise<T>,
): Promise<T> {
  const server = ChildProgram.start('server', PEER, [behaviour], environment(contestant.server))
  const { port } = await server.receive<{ port: number }>(TIMEOUT_MS)
  const result = await use(server, port)
  await server.stop()
  return result
}

async function callOnce(
  contestant: Contestant,
  port: number,
  [what, ...sizes]: readonly (string | number)[],
): Promise<Result> {
  const args = [String(what), String(port), ...sizes.map(String)]
  const client = ChildProgram.start('client', CALLER, args, environment(contestant.client))
  const result = await client.receive<Result>(TIMEOUT_MS)
  await client.stop()
  if (result.transport !== contestant.wire) {
    throw new Error(`measured ${result.transport} where ${contestant.wire} was meant`)
  }
  return result
}

function environment(mode: Mode): NodeJS.ProcessEnv {
  const options = process.env.NODE_OPTIONS
  return {
    ...process.env,
    NODE_OPTIONS: mode === 'plain' ? plainNodeOptions(options) : relinkedNodeOptions(options),
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}
