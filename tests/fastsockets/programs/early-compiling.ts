/**
 * An echo server that is also a client. It tells its port, and does what it is asked: `port` for round trips with the server
 * there, over a connection of its own, with pauses in between; nothing for whether V8 compiles a function that is new and has
 * run some times. Needs --allow-natives-syntax.
 */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readCoreTimes } from '../../../nic/index.ts'

interface Question {
  readonly port?: number
  readonly roundTrips?: number
  readonly pauseMs?: number
  /** The question is asked while the program makes round trips, and computes in between. */
  readonly isBusy?: boolean
}

/** Enough for an impatient V8, and too little for a patient one. */
const RUNS = process.versions.v8.startsWith('11.') ? 700 : 1500
/** What V8 compiles it compiles in a thread of its own, and on newer Nodes twice, the second time better. */
const PAUSES = 10
const PAUSE_MS = 50
/** More than half of the time. */
const BUSY_INTERVAL_MS = 10
const BUSY_MS = 6

type Sum = (a: number, b: number) => number

const isOptimized = new Function('f', 'return %ActiveTierIsTurbofan(f)') as (f: Sum) => boolean
let sums = 0

process.on('disconnect', () => process.exit())

const server = net.createServer({ noDelay: true }, accepted => accepted.pipe(accepted))
await once(server.listen(0, '127.0.0.1'), 'listening')
process.send?.({ port: (server.address() as net.AddressInfo).port })

process.on('message', async ({ port, roundTrips = 1, pauseMs = 0, isBusy = false }: Question) => {
  if (port === undefined) process.send?.({ isCompiled: await isCompiled() })
  else if (isBusy) process.send?.({ isCompiled: await isCompiledWhileBusy(port) })
  else await report(port, roundTrips, pauseMs)
})

/** With the part of the time that the program was on a core or waited for one. */
async function report(port: number, roundTrips: number, pauseMs: number): Promise<void> {
  const begunMs = performance.now()
  const before = runnableMs()
  const echoed = await echo(port, roundTrips, pauseMs)
  const runnableShare = (runnableMs() - before) / (performance.now() - begunMs)
  process.send?.({ echoed, runnableShare })
}

function runnableMs(): number {
  const times = readCoreTimes()
  return typeof times === 'object' ? times.ranMs + times.waitedMs : 0
}

async function echo(port: number, roundTrips: number, pauseMs: number): Promise<number> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  for (let i = 0; i < roundTrips; i++) {
    socket.write('x')
    await once(socket, 'data')
    if (pauseMs > 0) await sleep(pauseMs)
  }
  socket.destroy()
  return roundTrips
}

/** Few messages, so that they do not end it. */
async function isCompiledWhileBusy(port: number): Promise<boolean> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const work = setInterval(() => {
    socket.write('x')
    const endMs = performance.now() + BUSY_MS
    while (performance.now() < endMs);
  }, BUSY_INTERVAL_MS)
  await sleep(1000)
  const answer = await isCompiled()
  clearInterval(work)
  socket.destroy()
  return answer
}

/** Whether V8 compiles a function that nobody has run before. */
async function isCompiled(): Promise<boolean> {
  const terms = Array.from({ length: 16 }, (_, i) => `a = (a * ${i + 3} + b) | 0`)
  const sum = new Function('a', 'b', `/* ${sums++} */ ${terms.join(';')}; return a`) as Sum
  for (let pauses = 0; pauses < PAUSES; pauses++) {
    for (let i = 0; i < RUNS / PAUSES; i++) sum(i, 1)
    await sleep(PAUSE_MS)
  }
  sum(1, 1)
  return isOptimized(sum)
}
