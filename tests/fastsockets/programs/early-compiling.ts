/**
 * argv: a port to connect to; listens if there is none, and tells its own. Asked whether V8 compiles what has run some times,
 * it runs a function that is new so often, and looks. Asked for round trips, the client makes them.
 *
 * Needs --allow-natives-syntax.
 */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const [, , port] = process.argv
/** Enough for an impatient V8, and too little for a patient one. */
const RUNS = 2000
/** What V8 compiles it compiles in a thread of its own. */
const COMPILED_MS = 500
const TURBOFANNED = 1 << 6

type Sum = (a: number, b: number) => number

const statusOf = new Function('f', 'return %GetOptimizationStatus(f)') as (f: Sum) => number
let sums = 0
let socket: net.Socket | undefined

if (port === undefined) {
  const server = net.createServer({ noDelay: true }, accepted => accepted.pipe(accepted))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  process.send?.({ port: (server.address() as net.AddressInfo).port })
} else process.send?.({})

process.on('message', async ({ roundTrips = 0 }: { roundTrips?: number }) => {
  if (roundTrips > 0) await echo(roundTrips)
  process.send?.({ isCompiled: await isCompiled() })
})

async function echo(roundTrips: number): Promise<void> {
  if (socket === undefined) {
    socket = net.connect({ port: Number(port), host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
  }
  for (let i = 0; i < roundTrips; i++) {
    socket.write('x')
    await once(socket, 'data')
  }
}

/** Whether V8 compiles a function that nobody has run before. */
async function isCompiled(): Promise<boolean> {
  const terms = Array.from({ length: 16 }, (_, i) => `a = (a * ${i + 3} + b) | 0`)
  const sum = new Function('a', 'b', `/* ${sums++} */ ${terms.join(';')}; return a`) as Sum
  for (let i = 0; i < RUNS; i++) sum(i, 1)
  await sleep(COMPILED_MS)
  sum(1, 1)
  return (statusOf(sum) & TURBOFANNED) !== 0
}
