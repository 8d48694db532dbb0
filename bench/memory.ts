/**
 * `npm run bench:memory`: the cost of an idle connection and of a peer at both ends, in memory, shared memory and
 * descriptors. The programs are those of the tests (tests/fastsockets/programs/crowd.ts). `--connections N`, `--peers
 * N`.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import Table from 'cli-table3'
import { USAGE_ERROR } from '../fastsockets/cli/exit-codes.ts'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import { measuredEnvironment } from './measured-environment.ts'

const CROWD = new URL('../tests/fastsockets/programs/crowd.js', import.meta.url)
/** Made before the first measurement, so that one-time allocations are not counted. */
const FIRST_CONNECTIONS = 200
/** More than the rings hold, both ways: each page of them has been used then. */
const EXCHANGED_BYTES = 8_000_000
/** Limited by the number of ports. */
const CONNECTIONS_MAX = 60_000
/** Limited because each peer is a process. */
const PEERS_MAX = 1000

interface Usage {
  readonly descriptors: number
  readonly bytes: number
  readonly sharedBytes: number
}

const { connections, peers } = readCounts()

// The programs end when their channel to this process closes.
exitOnInterrupt()
const table = new Table({ head: ['', 'memory', 'of it shared', 'descriptors'] })
for (const mode of ['plain', 'relinked'] as const) {
  table.push(...(await connectionRows(mode, connections)))
  table.push(...(await peerRows(mode, peers)))
}
process.stdout.write(`${table}\n`)

function readCounts(): { readonly connections: number; readonly peers: number } {
  try {
    const { values } = parseArgs({
      options: {
        connections: { type: 'string', default: '10000' },
        peers: { type: 'string', default: '16' },
      },
    })
    return {
      connections: countOf('connections', values.connections, CONNECTIONS_MAX),
      peers: countOf('peers', values.peers, PEERS_MAX),
    }
  } catch (error) {
    process.stderr.write(`bench:memory: ${(error as Error).message}\n`)
    process.exit(USAGE_ERROR)
  }
}

function countOf(name: string, text: string, most: number): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count >= 1 && count <= most) return count
  throw new Error(`--${name} must be a whole number from 1 to ${most}`)
}

async function connectionRows(mode: 'plain' | 'relinked', count: number): Promise<string[][]> {
  const { server, port } = await startServer(mode)
  const client = start(mode, 'client', port)
  await receive(client)
  await ask(client, { open: FIRST_CONNECTIONS })
  const before = [await usage(server), await usage(client)]
  await ask(client, { open: FIRST_CONNECTIONS + count })
  const after = [await usage(server), await usage(client)]
  await stop(client, server)
  return ['server', 'client'].map((end, i) =>
    row(`${mode}: an idle connection, ${end}`, before[i] as Usage, after[i] as Usage, count),
  )
}

/** Measures peers of one server: new with one connection each, and after much data. */
async function peerRows(mode: 'plain' | 'relinked', count: number): Promise<string[][]> {
  const { server, port } = await startServer(mode)
  const clients = [await addClient(mode, port)]
  // What the process keeps of freed memory is there then (nic/posix/process-tuning.ts).
  await ask(clients[0] as ChildProcess, { exchange: EXCHANGED_BYTES })
  const before = await usage(server)
  while (clients.length <= count) clients.push(await addClient(mode, port))
  const idle = await usage(server)
  for (const client of clients.slice(1)) await ask(client, { exchange: EXCHANGED_BYTES })
  const used = await usage(server)
  await stop(...clients, server)
  return [
    row(`${mode}: a peer with one connection, server`, before, idle, count),
    row(`${mode}: the same after ${EXCHANGED_BYTES / 1e6} MB each way`, before, used, count),
  ]
}

function row(name: string, before: Usage, after: Usage, count: number): string[] {
  const each = (key: keyof Usage): number => (after[key] - before[key]) / count
  const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`
  return [name, kilobytes(each('bytes')), kilobytes(each('sharedBytes')), each('descriptors').toFixed(1)]
}

async function startServer(mode: 'plain' | 'relinked'): Promise<{ server: ChildProcess; port: number }> {
  const server = start(mode, 'server', 0)
  return { server, ...((await receive(server)) as { port: number }) }
}

async function addClient(mode: 'plain' | 'relinked', port: number): Promise<ChildProcess> {
  const client = start(mode, 'client', port)
  await receive(client)
  await ask(client, { open: 1 })
  await ask(client, { exchange: 1 })
  return client
}

function start(mode: 'plain' | 'relinked', role: string, port: number): ChildProcess {
  const env = measuredEnvironment(mode === 'relinked')
  return fork(CROWD, [role, String(port)], { env, execArgv: ['--expose-gc'] })
}

/** The child's next message; one at a time is under way. */
async function receive(child: ChildProcess): Promise<unknown> {
  const [answer] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`a program ended with ${code}`))),
  ])
  return answer
}

function ask(child: ChildProcess, question: object): Promise<unknown> {
  child.send(question)
  return receive(child)
}

async function usage(child: ChildProcess): Promise<Usage> {
  return (await ask(child, { count: true })) as Usage
}

async function stop(...children: ChildProcess[]): Promise<void> {
  const exits = children.map(child => once(child, 'exit'))
  for (const child of children) child.disconnect()
  await Promise.all(exits)
}
