/**
 * `npm run bench:am`: measures active messages against their targets. The same run measures the machine's limit in C
 * (two processes, one cache line) and plain `node:net` over TCP. Medians of five rounds, or `--rounds`. With `--driver`
 * between two network namespaces: between-hosts.ts.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { median } from 'simple-statistics'
import { ChildProgram } from '../fastsockets/cli/child-program.ts'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import { limitProgram, whyNoLimit } from './contestants/c-limit.ts'
import { contestant as netTcp } from './contestants/net-tcp.ts'
import { decodeLatencies, withPair } from './half.ts'
import { ablateBetweenHosts, measureBetweenHosts } from './hosts-report.ts'
import { describeMachine, warnUnlessQuiet } from './machine.ts'
import { measuredEnvironment } from './measured-environment.ts'
import { SMALL } from './sizes.ts'

const TIMEOUT_MS = 120_000
const AM_PEER = new URL('./programs/am-peer.js', import.meta.url)
const AM_CALLER = new URL('./programs/am-caller.js', import.meta.url)
const TCP_TIMES = { warmUpMs: 500, ms: 2000 }

const GIGA = 1e9
const MEGA = 1e6
const env = measuredEnvironment(false)

interface Result {
  readonly p50Us?: number
  readonly p99Us?: number
  readonly rate?: number
  readonly bytesPerSecond?: number
}

interface Rounds {
  limitUs: number[]
  tcpUs: number[]
  p50Us: number[]
  p99Us: number[]
  callsUs: number[]
  short: number[]
  medium: number[]
  long: number[]
  get: number[]
}

exitOnInterrupt()
const { values: wanted } = parseArgs({
  options: {
    driver: { type: 'string', default: 'shm' },
    mtu: { type: 'string', default: '1500' },
    rounds: { type: 'string', default: '5' },
    ablations: { type: 'boolean', default: false },
  },
})
warnUnlessQuiet(await describeMachine())
if (wanted.driver !== 'shm') {
  const { driver, ablations } = wanted
  const [mtu, rounds] = [Number(wanted.mtu), Number(wanted.rounds)]
  await (ablations ? ablateBetweenHosts(driver, mtu, rounds) : measureBetweenHosts(driver, mtu, rounds))
  process.exit()
}
const roundCount = Number(wanted.rounds)
const limit = await tryLimit()
const rounds: Rounds = {
  limitUs: [],
  tcpUs: [],
  p50Us: [],
  p99Us: [],
  callsUs: [],
  short: [],
  medium: [],
  long: [],
  get: [],
}
for (let round = 0; round < roundCount; round++) {
  process.stderr.write(`round ${round + 1} of ${roundCount}\n`)
  if (limit !== undefined) rounds.limitUs.push(Number(execFileSync(limit, { encoding: 'utf8' })))
  const roundTrip = await callActive('manual', 'round-trip', 1_000_000)
  rounds.p50Us.push(roundTrip.p50Us ?? Number.NaN)
  rounds.p99Us.push(roundTrip.p99Us ?? Number.NaN)
  rounds.short.push((await callActive('manual', 'short', 5_000_000)).rate ?? Number.NaN)
  rounds.medium.push((await callActive('manual', 'medium', 1_000_000)).bytesPerSecond ?? Number.NaN)
  rounds.long.push((await callActive('manual', 'long', 10_000)).bytesPerSecond ?? Number.NaN)
  rounds.get.push((await callActive('manual', 'get', 10_000)).bytesPerSecond ?? Number.NaN)
  rounds.tcpUs.push(await echoOverTcp())
  rounds.callsUs.push((await callActive('event-loop', 'calls', 200_000)).p50Us ?? Number.NaN)
}
print()

async function callActive(progress: string, what: string, count: number): Promise<Result> {
  const peer = ChildProgram.start('peer', AM_PEER, [progress], env)
  const { name } = await peer.receive<{ name: string }>(TIMEOUT_MS)
  const caller = ChildProgram.start('caller', AM_CALLER, [what, name, String(count)], env)
  const result = await caller.receive<Result>(TIMEOUT_MS)
  await caller.stop()
  await peer.stop()
  return result
}

/** The p50. */
async function echoOverTcp(): Promise<number> {
  return await withPair(netTcp, async ({ client }) => {
    const counted = await client.ask({ ask: 'pingPong', size: SMALL, ...TCP_TIMES })
    return decodeLatencies(counted).percentiles().p50
  })
}

/** The reference compiled from C; undefined without a compiler, with a message to the user. */
async function tryLimit(): Promise<string | undefined> {
  const reason = await whyNoLimit()
  if (reason === undefined) return await limitProgram()
  process.stderr.write(`skipped: the limit in C: ${reason}\n`)
  return undefined
}

function print(): void {
  const limitUs = median(rounds.limitUs)
  const p50Us = median(rounds.p50Us)
  const p99Us = median(rounds.p99Us)
  const tcpUs = median(rounds.tcpUs)
  const callsUs = median(rounds.callsUs)
  const table = new Table({
    head: ['measurement', 'result', 'beside', 'promise', ''],
    style: { head: [], border: [], compact: true },
  })
  const row = (name: string, result: string, beside: string, promise: string, holds: boolean): void => {
    table.push([name, result, beside, promise, holds ? 'holds' : 'MISSED'])
  }
  row(
    'short round trip, polling, p50',
    `${p50Us.toFixed(3)} us`,
    limit === undefined
      ? 'no limit in C'
      : `C limit ${limitUs.toFixed(3)} us: ${(p50Us / limitUs).toFixed(1)} times`,
    'at most 3 times',
    p50Us <= 3 * limitUs,
  )
  row('short round trip, polling, p99', `${p99Us.toFixed(3)} us`, '', 'at most 2 us', p99Us <= 2)
  rowOf('short, one way', rounds.short, MEGA, 'million/s', 4)
  rowOf('medium 4 KiB, one way', rounds.medium, GIGA, 'GB/s', 4)
  rowOf('long 1 MiB, one way', rounds.long, GIGA, 'GB/s', 10)
  rowOf('get 1 MiB, one after the other', rounds.get, GIGA, 'GB/s', 10)
  row(
    'call, event loop, p50',
    `${callsUs.toFixed(2)} us`,
    `node:net TCP ${tcpUs.toFixed(1)} us: 1/${(tcpUs / callsUs).toFixed(1)}`,
    'at most 1/10',
    callsUs <= tcpUs / 10,
  )
  process.stdout.write(`${table.toString()}\n`)

  function rowOf(name: string, values: readonly number[], scale: number, unit: string, least: number): void {
    const value = median(values) / scale
    row(name, `${value.toFixed(2)} ${unit}`, '', `at least ${least} ${unit}`, value >= least)
  }
}
