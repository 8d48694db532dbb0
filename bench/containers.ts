/**
 * `npm run bench:containers`: what sockets gain over TCP between two containers on a bridge, beside what they gain within one
 * network namespace; and what a relinked client pays for a connect if its rendezvous folder has no name of the server. Medians of five rounds, or `--rounds`.
 * Needs root and iproute2.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { median } from 'simple-statistics'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import type { Contestant } from './contestants/contestant.ts'
import { contestant as netRelinked } from './contestants/net-relinked.ts'
import { contestant as netTcp } from './contestants/net-tcp.ts'
import { decodeLatencies, Half } from './half.ts'
import type { Counted } from './half-questions.ts'
import { AS_USERS_START, HOST_VARIABLE } from './half-settings.ts'
import { describeMachine, warnUnlessQuiet } from './machine.ts'
import { LARGE, SMALL } from './sizes.ts'
import { type Host, makeSwitchedHosts, noTwoHosts } from './two-hosts.ts'

const TIMES = { warmUpMs: 2000, ms: 1500 }
/** The namespaces of a container besides that of the network. */
const CONTAINER = ['unshare', '--mount', '--ipc', '--uts']
/** At least so much of what one namespace gains must be left between two containers. */
const SHARE_MIN = 0.9
/** Most time of a connect that looks a name up in vain, as a share of plain's. */
const MISS_MAX = 1.03

/** Of each: more is better. */
interface Rates {
  readonly echo: number
  readonly stream: number
  readonly connections: number
}

/** `connectUs`: the median until a connection is open. */
interface Connects {
  readonly connectUs: number
  readonly rate: number
}

interface Round {
  readonly one: Rates
  readonly two: Rates
  /** Share of plain's; `again` is plain itself, measured a second time. */
  readonly miss: Connects
  readonly again: Connects
}

exitOnInterrupt()
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const without = noTwoHosts()
if (without) throw new Error(without)
warnUnlessQuiet(await describeMachine())
const ends: (() => unknown)[] = []
try {
  const rounds: Round[] = []
  const scope = { teardown: (end: () => unknown) => void ends.push(end) }
  const { near, far } = makeSwitchedHosts(scope)
  // Closed connections keep their ports for a minute, and connect(2) searches ever longer for a free one.
  for (const host of [near, far]) on(host, 'sysctl', '-q', '-w', 'net.ipv4.tcp_max_tw_buckets=200')
  const folder = mkdtempSync(join(tmpdir(), 'rendezvous-'))
  ends.push(() => rmSync(folder, { recursive: true }))
  for (let round = 1; round <= Number(values.rounds); round++) {
    process.stderr.write(`round ${round} of ${values.rounds}\n`)
    rounds.push({
      one: await gained(near, near, folder),
      two: await gained(near, far, folder),
      ...(await missed(near, far, folder)),
    })
  }
  print(rounds)
} finally {
  for (const end of ends.reverse()) end()
}

/** Relinked in shares of plain, with the client on one and the server on the other. */
async function gained(client: Host, server: Host, folder: string): Promise<Rates> {
  const plain = await ratesOf(netTcp, client, server, {})
  const relinked = await ratesOf(netRelinked, client, server, { FASTSOCKETS_RENDEZVOUS: folder })
  return {
    echo: relinked.echo / plain.echo,
    stream: relinked.stream / plain.stream,
    connections: relinked.connections / plain.connections,
  }
}

async function ratesOf(
  contestant: Contestant,
  client: Host,
  server: Host,
  settings: NodeJS.ProcessEnv,
): Promise<Rates> {
  return await between(contestant, contestant, client, server, settings, async half => {
    const echo = await half.ask({ ask: 'pingPong', size: SMALL, ...TIMES })
    const { bytes, ms } = await half.ask({ ask: 'stream', size: LARGE, ...TIMES })
    const connections = await half.ask({ ask: 'connect', ...TIMES })
    return { echo: rateOf(echo), stream: bytes / ms, connections: rateOf(connections) }
  })
}

/** A relinked client, with the folder, and a plain server: in shares of plain before and after. */
async function missed(client: Host, server: Host, folder: string): Promise<Pick<Round, 'miss' | 'again'>> {
  const measure = (contestant: Contestant): Promise<Connects> =>
    between(
      contestant,
      netTcp,
      client,
      server,
      { ...AS_USERS_START, FASTSOCKETS_RENDEZVOUS: folder },
      async half => {
        const counted = await half.ask({ ask: 'connect', ...TIMES })
        return { connectUs: decodeLatencies(counted).percentiles().p50, rate: rateOf(counted) }
      },
    )
  const before = await measure(netTcp)
  const found = await measure(netRelinked)
  const after = await measure(netTcp)
  const plain = {
    connectUs: (before.connectUs + after.connectUs) / 2,
    rate: (before.rate + after.rate) / 2,
  }
  return { miss: shareOf(found, plain), again: shareOf(after, before) }
}

/** Connects a client half on one host with a server half on the other. */
async function between<T>(
  contestant: Contestant,
  serving: Contestant,
  client: Host,
  server: Host,
  settings: NodeJS.ProcessEnv,
  use: (half: Half) => Promise<T>,
): Promise<T> {
  const env = { ...settings, [HOST_VARIABLE]: server.address }
  const halves = [
    Half.start(serving, 'server', env, inContainer(server)),
    Half.start(contestant, 'client', env, inContainer(client)),
  ] as const
  const [serverHalf, clientHalf] = halves
  try {
    const { address } = await serverHalf.ask({ ask: 'serve' })
    await clientHalf.ask({ ask: 'dial', address })
    const result = await use(clientHalf)
    await clientHalf.ask({ ask: 'close' })
    await Promise.all(halves.map(half => half.stop()))
    return result
  } catch (error) {
    for (const half of halves) half.kill()
    throw error
  }
}

function print(rounds: readonly Round[]): void {
  const gains = newTable(['relinked / TCP', 'one namespace', 'two containers', 'share', ''])
  for (const name of ['echo', 'stream', 'connections'] as const) {
    const [one, two] = [
      median(rounds.map(({ one }) => one[name])),
      median(rounds.map(({ two }) => two[name])),
    ]
    gains.push([
      name,
      one.toFixed(2),
      two.toFixed(2),
      (two / one).toFixed(2),
      verdict(two / one >= SHARE_MIN),
    ])
  }
  const misses = newTable(['no such name / plain', 'relinked', 'plain again', ''])
  const [us, usAgain] = [
    median(rounds.map(({ miss }) => miss.connectUs)),
    median(rounds.map(({ again }) => again.connectUs)),
  ]
  const [rate, rateAgain] = [
    median(rounds.map(({ miss }) => miss.rate)),
    median(rounds.map(({ again }) => again.rate)),
  ]
  misses.push(
    ['until connected, p50', us.toFixed(3), usAgain.toFixed(3), verdict(us <= MISS_MAX)],
    ['connections a second', rate.toFixed(3), rateAgain.toFixed(3), ''],
  )
  process.stdout.write(`${gains.toString()}\n${misses.toString()}\n`)
}

function newTable(head: string[]): Table.Table {
  return new Table({ head, style: { head: [], border: [], compact: true } })
}

function verdict(holds: boolean): string {
  return holds ? 'holds' : 'MISSED'
}

function shareOf(one: Connects, other: Connects): Connects {
  return { connectUs: one.connectUs / other.connectUs, rate: one.rate / other.rate }
}

function rateOf(counted: Counted): number {
  return decodeLatencies(counted).count / counted.ms
}

function inContainer({ namespace }: Host): readonly string[] {
  return ['ip', 'netns', 'exec', namespace, ...CONTAINER]
}

function on({ namespace }: Host, ...command: readonly string[]): void {
  execFileSync('ip', ['netns', 'exec', namespace, ...command])
}
