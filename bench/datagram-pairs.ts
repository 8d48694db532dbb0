/**
 * Two processes of programs/datagram-half.ts, and what they measure: `node:dgram` plain and relinked, message sockets. The same round trip over
 * raw active messages stands beside them.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { contestant as activeMessages } from './contestants/am-polling.ts'
import { decodeLatencies, withPair as withHalves } from './half.ts'

const PROGRAM = new URL('./programs/datagram-half.js', import.meta.url)
const REGISTER = new URL('../fastsockets/register.js', import.meta.url)
/** Long messages go by rendezvous. */
const ENVIRONMENT = { FASTSOCKETS_START: 'fast', FASTSOCKETS_ZCOPY_THRESHOLD: String(256 * 1024) }
const TIMEOUT_MS = 60_000
/** Of the datagrams of a stream. */
export const STREAMED_SIZE = 1024

export type Mode = 'plain' | 'relinked'
/** Of the server and of the client. */
type Modes = readonly [server: Mode, client: Mode]
const PLAIN: Modes = ['plain', 'plain']

function start(mode: Mode, ...args: (string | number)[]): ChildProcess {
  const execArgv = mode === 'plain' ? [] : ['--import', REGISTER.href]
  return fork(PROGRAM, args.map(String), { execArgv, env: { ...process.env, ...ENVIRONMENT } })
}

async function answer<T>(child: ChildProcess): Promise<T> {
  const [message] = await once(child, 'message', { signal: AbortSignal.timeout(TIMEOUT_MS) })
  return message as T
}

/** Runs both sides, and returns what `use` makes of them. */
async function withPair<T>(
  modes: Modes,
  [serving, calling]: readonly [server: string, client: string],
  size: number,
  ms: number,
  use: (server: ChildProcess, client: ChildProcess) => Promise<T>,
): Promise<T> {
  const children = [start(modes[0], serving)]
  try {
    const [server] = children as [ChildProcess]
    const { port } = await answer<{ port: number }>(server)
    const client = start(modes[1], calling, port, size, ms)
    children.unshift(client)
    return await use(server, client)
  } finally {
    for (const child of children) {
      child.disconnect()
      await once(child, 'exit')
    }
  }
}

async function p50Us(
  modes: Modes,
  roles: readonly [string, string],
  size: number,
  ms: number,
): Promise<number> {
  return (await withPair(modes, roles, size, ms, (_, client) => answer<{ p50Us: number }>(client))).p50Us
}

/** The median round trip of `node:dgram`. */
export function datagramUs(modes: Modes, size: number, ms: number): Promise<number> {
  return p50Us(modes, ['echo', 'ask'], size, ms)
}

/** Datagrams of `STREAMED_SIZE` that are received in a second. */
export function receivedRate(mode: Mode, ms: number): Promise<number> {
  return withPair([mode, mode], ['sink', 'stream'], STREAMED_SIZE, ms, async server => {
    const count = async (): Promise<{ count: number; ms: number }> => {
      await new Promise(resolve => setTimeout(resolve, ms))
      server.send({})
      return await answer(server)
    }
    const [before, after] = [await count(), await count()]
    return (1000 * (after.count - before.count)) / (after.ms - before.ms)
  })
}

/** The median round trip of message sockets that poll. */
export function messageUs(size: number, ms: number): Promise<number> {
  return p50Us(PLAIN, ['messages', 'poll'], size, ms)
}

/** Bytes a second of message sockets, with promises. */
export async function messageRate(size: number, ms: number): Promise<number> {
  const use = (_: ChildProcess, client: ChildProcess) => answer<{ bytesPerSecond: number }>(client)
  return (await withPair(PLAIN, ['taker', 'push'], size, ms, use)).bytesPerSecond
}

/** The median round trip of raw active messages that poll. */
export function activeMessageUs(size: number, ms: number): Promise<number> {
  return withHalves(activeMessages, async ({ client }) => {
    const counted = await client.ask({ ask: 'pingPong', size, warmUpMs: ms / 2, ms: ms / 2 })
    return decodeLatencies(counted).percentiles().p50
  })
}
