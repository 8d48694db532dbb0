/**
 * `npm run bench:names`: what the name service must reach, with a real daemon, its embedded store, and clients in
 * processes of their own. A server of `node:http` that does nothing, asked at the same pace, shows what
 * this machine allows.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import Table from 'cli-table3'
import { ChildProgram } from '../fastsockets/cli/child-program.ts'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import { describeMachine, warnUnlessQuiet } from './machine.ts'

const SECONDS = 5
const STARTS = 5
const NAMES = 10_000
const WATCHERS = 1000
const TIMEOUT_MS = 120_000
const MAIN = fileURLToPath(new URL('../fastsockets/cli/main.js', import.meta.url))
const CALLER = new URL('./programs/names-caller.js', import.meta.url)
const BARE = new URL('./programs/names-bare.js', import.meta.url)
const LOOK_UPS = 5000
const REGISTRATIONS = 1500
const PACE = [SECONDS, LOOK_UPS, REGISTRATIONS] as const

interface Result {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

exitOnInterrupt()
warnUnlessQuiet(await describeMachine())
const folder = mkdtempSync(join(tmpdir(), 'named-bench-'))
const socketPath = join(folder, 's')
const table = new Table({
  head: ['measurement', 'result', 'must reach', ''],
  style: { head: [], border: [], compact: true },
})

let daemon = start()
process.once('exit', () => {
  daemon.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
})
await untilReady()
await measure()
daemon.kill('SIGKILL')
process.stdout.write(`${table.toString()}\n`)

async function measure(): Promise<void> {
  const holder = await stayingProgram('fill', NAMES)
  const lookUps = await run('look-ups', SECONDS)
  add('look-ups a second', lookUps.perSecond, 'at least 5000', lookUps.perSecond >= 5000)
  add('  p50, p99 in ms', `${lookUps.p50Ms.toFixed(2)}, ${lookUps.p99Ms.toFixed(2)}`)
  const registrations = await run('registrations', SECONDS)
  add('registrations a second', registrations.perSecond, 'at least 1500', registrations.perSecond >= 1500)
  add('  p50, p99 in ms', `${registrations.p50Ms.toFixed(2)}, ${registrations.p99Ms.toFixed(2)}`)

  const watchers = await stayingProgram('watch', WATCHERS)
  const both = await run('paced', ...PACE)
  const pace = `${LOOK_UPS} look-ups and ${REGISTRATIONS} registrations a second`
  const what = `p99 in ms of ${pace}, ${NAMES} names, ${WATCHERS} watchers`
  add(what, both.p99Ms.toFixed(2), 'under 10', both.p99Ms < 10)
  const memoryMb = residentBytes() / 1e6
  add('  memory then, in MB', memoryMb.toFixed(0), 'under 150', memoryMb < 150)
  const plain = await run('paced-plain', ...PACE)
  add('  p99 in ms, the client being node:http', plain.p99Ms.toFixed(2))
  await watchers.stop()
  add('  p99 in ms, the daemon being a bare node:http server, too', (await runBare()).p99Ms.toFixed(2))

  const starts: number[] = []
  for (let i = 0; i < STARTS; i++) {
    daemon.kill(i % 2 ? 'SIGTERM' : 'SIGKILL')
    await once(daemon, 'exit')
    const startMs = performance.now()
    daemon = start()
    await untilReady()
    starts.push(performance.now() - startMs)
  }
  const startMs = starts.toSorted((a, b) => a - b)[STARTS >> 1] ?? Number.NaN
  add(`start to ready in ms, ${NAMES} names in the store`, startMs.toFixed(0), 'under 500', startMs < 500)
  await holder.stop()
}

function start(): ChildProcess {
  const args = [MAIN, 'named', '--socket-path', socketPath, '--store-path', join(folder, 'store')]
  return spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
}

async function untilReady(): Promise<void> {
  while (!(await isReady())) await delay(2)
}

function isReady(): Promise<boolean> {
  return new Promise(resolve => {
    const call = request({ socketPath, path: '/readyz', agent: false }, response => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    call.once('error', () => resolve(false))
    call.end()
  })
}

async function stayingProgram(what: string, count: number): Promise<ChildProgram> {
  const program = caller(what, count)
  await program.receive(TIMEOUT_MS)
  return program
}

async function run(what: string, ...numbers: number[]): Promise<Result> {
  process.stderr.write(`${what}\n`)
  const program = caller(what, ...numbers)
  const result = await program.receive<Result>(TIMEOUT_MS)
  await program.stop()
  return result
}

/** The same pace, from the same plain client, to a server that does nothing. */
async function runBare(): Promise<Result> {
  process.stderr.write('bare\n')
  const path = join(folder, 'bare')
  const server = ChildProgram.start('bare', BARE, [path], process.env)
  await server.receive(TIMEOUT_MS)
  const args = [`unix:${path}`, 'paced-plain', ...PACE.map(String)]
  const program = ChildProgram.start('paced-plain', CALLER, args, process.env)
  const result = await program.receive<Result>(TIMEOUT_MS)
  await program.stop()
  await server.stop()
  return result
}

function caller(what: string, ...numbers: number[]): ChildProgram {
  return ChildProgram.start(what, CALLER, [`unix:${socketPath}`, what, ...numbers.map(String)], process.env)
}

function residentBytes(): number {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8')) ?? []
  return Number(kib) * 1024
}

function add(what: string, result: string | number, wanted = '', holds?: boolean): void {
  table.push([what, result, wanted, holds === undefined ? '' : holds ? 'holds' : 'MISSED'])
}
