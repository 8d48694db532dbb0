/**
 * Programs that live up to a second: a new server and a new client of a package from npm, from their start to their end. The
 * programs are those of tests/interop, which only a checkout has.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { geometricMean } from 'simple-statistics'
import { measuredEnvironment } from '../measured-environment.ts'
import { measureInRounds } from '../rounds.ts'
import type { Suite } from '../suite.ts'

const PROGRAMS = new URL('../../tests/interop/programs/', import.meta.url)
const NAMES = [
  'http',
  'https',
  'http2',
  'express',
  'fastify',
  'undici',
  'ws',
  'socket.io',
  'mqtt',
  'grpc',
  'ftp',
]
const QUICK_NAMES = ['http']
const TIMEOUT_MS = 60_000
/**
 * By contestant: the wires that connections of the client may have. Relinked ones start on TCP; a search may find the server
 * unready, or at its end.
 */
const WIRES: Readonly<Record<string, readonly string[]>> = {
  'net-tcp': ['tcp NOT_INSTALLED'],
  'net-relinked': ['tcp STARTED_ON_TCP', 'tcp NOT_RELINKED', 'tcp SILENT', 'tcp HANDSHAKE', 'shm'],
}

export const short: Suite = {
  name: 'short',
  what: 'programs that live up to a second, plain and relinked: the geometric mean of their times',
  quickSeconds: 3,
  contestants: Object.keys(WIRES),
  run: async context => {
    const contestants = Object.keys(WIRES).filter(context.wants)
    if (!existsSync(PROGRAMS)) {
      for (const name of contestants) context.skip(name, 'its programs are in a checkout only: tests/interop')
      return []
    }
    const names = context.isQuick ? QUICK_NAMES : NAMES
    const trials = contestants.map(contestant => ({
      contestant,
      measure: async () => {
        const seconds: number[] = []
        for (const name of names) seconds.push(await secondsOf(name, contestant))
        const value = geometricMean(seconds)
        const parameters = { programs: names.length }
        return [{ parameters, metric: 'time', unit: 's', better: 'lower' as const, value }]
      },
    }))
    return await measureInRounds(context, 'short', trials)
  },
}

/** From the start of a server and a client to the end of both. */
async function secondsOf(name: string, contestant: string): Promise<number> {
  const startMs = performance.now()
  const [server, client] = [start(name, contestant), start(name, contestant)]
  const timer = setTimeout(() => kill(server, client), TIMEOUT_MS)
  try {
    const place = await ask(server, { do: 'serve' })
    const { wires } = (await ask(client, { do: 'call', place })) as { wires: readonly string[] }
    await ask(server, { do: 'finish' })
    await Promise.all([end(client), end(server)])
    const seconds = (performance.now() - startMs) / 1000
    if (wires.length === 0 || !wires.every(wire => WIRES[contestant]?.includes(wire)))
      throw new Error(`${name} used ${wires.join(' and ')}, not ${WIRES[contestant]?.join(' or ')}`)
    return seconds
  } finally {
    clearTimeout(timer)
    kill(server, client)
  }
}

function start(name: string, contestant: string): ChildProcess {
  const env = measuredEnvironment(contestant === 'net-relinked')
  const stdio = ['ignore', 'ignore', 'inherit', 'ipc'] as const
  return fork(fileURLToPath(new URL(`${name}.js`, PROGRAMS)), { env, execArgv: [], stdio: [...stdio] })
}

/** The child's next message; throws if it ends before. */
async function ask(child: ChildProcess, command: object): Promise<unknown> {
  const answered = new AbortController()
  try {
    child.send(command)
    const next = once(child, 'message', { signal: answered.signal })
    const ended = once(child, 'exit', { signal: answered.signal }).then(() => {
      throw new Error(`${child.spawnfile} ended with code ${child.exitCode}`)
    })
    // The other one rejects when it is aborted.
    for (const either of [next, ended]) either.catch(() => {})
    const [message] = await Promise.race([next, ended])
    return message
  } finally {
    answered.abort()
  }
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.send({ do: 'exit' })
  await exited
}

function kill(...children: readonly ChildProcess[]): void {
  for (const child of children)
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
}
