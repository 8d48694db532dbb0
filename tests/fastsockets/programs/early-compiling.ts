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
const RUNS = process.versions.v8.startsWith('11.') ? 700 : 1500
/** What V8 compiles it compiles in a thread of its own, and on newer Nodes twice, the second time better. */
const PAUSES = 10
const PAUSE_MS = 50

type Sum = (a: number, b: number) => number

const isOptimized = new Function('f', 'return %ActiveTierIsTurbofan(f)') as (f: Sum) => boolean
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
  for (let pauses = 0; pauses < PAUSES; pauses++) {
    for (let i = 0; i < RUNS / PAUSES; i++) sum(i, 1)
    await sleep(PAUSE_MS)
  }
  sum(1, 1)
  return isOptimized(sum)
}
