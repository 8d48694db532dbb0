/**
 * `npm run bench:datagrams`: `node:dgram` plain and relinked, and message sockets, against their targets. Medians of five rounds, or of
 * as many as the first argument says; the second one is the milliseconds of each measurement.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import Table from 'cli-table3'
import { median } from 'simple-statistics'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import { describeMachine, warnUnlessQuiet } from './machine.ts'

const [rounds = 5, ms = 1000] = process.argv.slice(2).map(Number)
const PROGRAM = new URL('./programs/datagram-half.js', import.meta.url)
const REGISTER = new URL('../fastsockets/register.js', import.meta.url)
/** Long messages go by rendezvous. */
const ENVIRONMENT = { FASTSOCKETS_START: 'fast', FASTSOCKETS_ZCOPY_THRESHOLD: String(256 * 1024) }
const GIGA = 1e9

type Mode = 'plain' | 'relinked'

function start(mode: Mode, ...args: (string | number)[]): ChildProcess {
  const execArgv = mode === 'plain' ? [] : ['--import', REGISTER.href]
  return fork(PROGRAM, args.map(String), { execArgv, env: { ...process.env, ...ENVIRONMENT } })
}

async function answer<T>(child: ChildProcess): Promise<T> {
  const [message] = await once(child, 'message', { signal: AbortSignal.timeout(60_000) })
  return message as T
}

/** Runs both sides, and returns what `use` makes of them. */
async function withPair<T>(
  mode: Mode,
  roles: readonly [server: string, client: string],
  size: number,
  use: (server: ChildProcess, client: ChildProcess) => Promise<T>,
): Promise<T> {
  const server = start(mode, roles[0])
  const { port } = await answer<{ port: number }>(server)
  const client = start(mode, roles[1], port, size, ms)
  try {
    return await use(server, client)
  } finally {
    for (const child of [client, server]) {
      child.disconnect()
      await once(child, 'exit')
    }
  }
}

async function roundTripUs(mode: Mode, roles: readonly [string, string], size: number): Promise<number> {
  return (await withPair(mode, roles, size, (_, client) => answer<{ p50Us: number }>(client))).p50Us
}

/** Datagrams that have been received in a second. */
async function receivedRate(mode: Mode): Promise<number> {
  return await withPair(mode, ['sink', 'stream'], 1024, async server => {
    const count = async (): Promise<{ count: number; ms: number }> => {
      await new Promise(resolve => setTimeout(resolve, ms))
      server.send({})
      return await answer(server)
    }
    const [before, after] = [await count(), await count()]
    return (1000 * (after.count - before.count)) / (after.ms - before.ms)
  })
}

async function messageRate(size: number): Promise<number> {
  const use = (_: ChildProcess, client: ChildProcess) => answer<{ bytesPerSecond: number }>(client)
  return (await withPair('plain', ['taker', 'push'], size, use)).bytesPerSecond / GIGA
}

const MEASURED = {
  plainUs: () => roundTripUs('plain', ['echo', 'ask'], 64),
  relinkedUs: () => roundTripUs('relinked', ['echo', 'ask'], 64),
  plainRate: () => receivedRate('plain'),
  relinkedRate: () => receivedRate('relinked'),
  messageUs: () => roundTripUs('plain', ['messages', 'poll'], 4),
  rate64K: () => messageRate(64 * 1024),
  rate1M: () => messageRate(1024 * 1024),
}
type Name = keyof typeof MEASURED

exitOnInterrupt()
warnUnlessQuiet(await describeMachine())
const figures = new Map<Name, number[]>()
for (let round = 0; round < rounds; round++) {
  process.stderr.write(`round ${round + 1} of ${rounds}\n`)
  for (const name of Object.keys(MEASURED) as Name[])
    figures.set(name, [...(figures.get(name) ?? []), await MEASURED[name]()])
}
const of = (name: Name): number => median(figures.get(name) ?? [])
const echo = of('plainUs') / of('relinkedUs')
const received = of('relinkedRate') / of('plainRate')
const table = new Table({ head: ['measurement', 'plain', 'relinked', 'ratio', 'promise', ''] })
table.push(
  [
    'node:dgram, 64 B round trip, p50',
    `${of('plainUs').toFixed(1)} us`,
    `${of('relinkedUs').toFixed(1)} us`,
    echo.toFixed(1),
    'at least 8',
    verdict(echo >= 8),
  ],
  [
    'node:dgram, 1 KiB received a second',
    of('plainRate').toFixed(0),
    of('relinkedRate').toFixed(0),
    received.toFixed(1),
    'at least 5',
    verdict(received >= 5),
  ],
  ['message sockets, 4 B round trip, p50', '', `${of('messageUs').toFixed(2)} us`, '', '', ''],
  [
    'message sockets, 64 KiB',
    '',
    `${of('rate64K').toFixed(1)} GB/s`,
    '',
    'at least 5 GB/s',
    verdict(of('rate64K') >= 5),
  ],
  [
    'message sockets, 1 MiB by rendezvous',
    '',
    `${of('rate1M').toFixed(1)} GB/s`,
    '',
    'at least 8 GB/s',
    verdict(of('rate1M') >= 8),
  ],
)
process.stdout.write(`${table.toString()}\n`)

function verdict(holds: boolean): string {
  return holds ? 'holds' : 'MISSED'
}
