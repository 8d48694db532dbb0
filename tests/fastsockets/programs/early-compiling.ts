/**
 * An echo server that is also a client. It tells its port, and does what it is asked: `port` for round trips with the server
 * there, over a connection of its own, with pauses in between; nothing for whether V8 compiles a function that is new and has
 * run some times. Needs --allow-natives-syntax.
 */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

interface Question {
  readonly port?: number
  readonly roundTrips?: number
  readonly pauseMs?: number
}

/** Enough for an impatient V8, and too little for a patient one. */
const RUNS = process.versions.v8.startsWith('11.') ? 700 : 1500
/** What V8 compiles it compiles in a thread of its own, and on newer Nodes twice, the second time better. */
const PAUSES = 10
const PAUSE_MS = 50

type Sum = (a: number, b: number) => number

const isOptimized = new Function('f', 'return %ActiveTierIsTurbofan(f)') as (f: Sum) => boolean
let sums = 0

const server = net.createServer({ noDelay: true }, accepted => accepted.pipe(accepted))
await once(server.listen(0, '127.0.0.1'), 'listening')
process.send?.({ port: (server.address() as net.AddressInfo).port })

process.on('message', async ({ port, roundTrips = 1, pauseMs = 0 }: Question) => {
  if (port === undefined) process.send?.({ isCompiled: await isCompiled() })
  else process.send?.({ echoed: await echo(port, roundTrips, pauseMs) })
})

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
