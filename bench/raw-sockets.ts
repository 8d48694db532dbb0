/** `npm run bench:raw`: what raw sockets promise, over shared memory, polling and by the event loop. Medians of five rounds. */
import { loadavg } from 'node:os'
import Table from 'cli-table3'
import { ChildProgram } from '../fastsockets/cli/child-program.ts'
import { plainNodeOptions } from '../fastsockets/cli/relink.ts'

const ROUNDS = 5
const TIMEOUT_MS = 120_000
const PEER = new URL('./programs/raw-peer.js', import.meta.url)
const CALLER = new URL('./programs/raw-caller.js', import.meta.url)
const GIGA = 1e9
const ECHOES = 500_000
const WAITED_ECHOES = 100_000
/** 3 GB. */
const WRITES = 48_000
const env = { ...process.env, NODE_OPTIONS: plainNodeOptions(process.env.NODE_OPTIONS) }

interface Result {
  readonly p50Us?: number
  readonly p99Us?: number
  readonly bytesPerSecond?: number
}

const load = loadavg()[0] ?? 0
if (load > 0.5) process.stderr.write(`warning: this machine is not quiet (load ${load.toFixed(2)})\n`)
const echoes: Result[] = []
const waitedEchoes: Result[] = []
const streams: Result[] = []
const waitedStreams: Result[] = []
for (let round = 0; round < ROUNDS; round++) {
  process.stderr.write(`round ${round + 1} of ${ROUNDS}\n`)
  echoes.push(await measure('echo', 'polling', ECHOES))
  streams.push(await measure('sink', 'polling', WRITES))
  waitedEchoes.push(await measure('echo', 'waiting', WAITED_ECHOES))
  waitedStreams.push(await measure('sink', 'waiting', WRITES))
}
print()

async function measure(what: string, how: string, count: number): Promise<Result> {
  const peer = ChildProgram.start('peer', PEER, [what, how], env)
  const { port } = await peer.receive<{ port: number }>(TIMEOUT_MS)
  const caller = ChildProgram.start('caller', CALLER, [String(port), what, how, String(count)], env)
  const result = await caller.receive<Result>(TIMEOUT_MS)
  await caller.stop()
  await peer.stop()
  return result
}

function print(): void {
  const table = new Table({ head: ['measurement', 'result', 'promise', ''] })
  const us = (results: Result[], key: 'p50Us' | 'p99Us'): number => median(results.map(result => result[key]))
  const rate = (results: Result[]): number => median(results.map(result => result.bytesPerSecond)) / GIGA
  const p50 = us(echoes, 'p50Us')
  const polled = rate(streams)
  table.push(
    ['64 B round trip, polling, p50', `${p50.toFixed(2)} us`, 'at most 1 us', verdict(p50 <= 1)],
    ['64 B round trip, polling, p99', `${us(echoes, 'p99Us').toFixed(2)} us`, '', ''],
    ['64 KiB one way, polling', `${polled.toFixed(1)} GB/s`, 'at least 5 GB/s', verdict(polled >= 5)],
    ['64 B round trip, promises, p50', `${us(waitedEchoes, 'p50Us').toFixed(2)} us`, '', ''],
    ['64 KiB one way, promises', `${rate(waitedStreams).toFixed(1)} GB/s`, '', ''],
  )
  console.log(table.toString())
}

function verdict(holds: boolean): string {
  return holds ? 'holds' : 'MISSED'
}

function median(values: readonly (number | undefined)[]): number {
  const sorted = values.map(value => value ?? Number.NaN).sort((a, b) => a - b)
  return sorted[sorted.length >> 1] as number
}
