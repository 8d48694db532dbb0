/**
 * argv: client | server. A client that has round trips without a pause with a server in another process, then with a plain one
 * besides, while timers and immediates of its own are due. Tells how many of each there were until each has come often, or the time
 * is over.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

const OFTEN = 200
const TRIPS_MIN = 20_000
const TIME_MS = 20_000

function serve(): void {
  const server = net.createServer({ noDelay: true }, socket => {
    socket.on('data', bytes => socket.write(bytes))
    socket.on('error', () => {})
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

async function connect(execArgv: string[]): Promise<net.Socket> {
  const server = fork(fileURLToPath(import.meta.url), ['server'], { execArgv })
  server.unref()
  const [port] = (await once(server, 'message')) as [number]
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  socket.on('error', () => {})
  return socket
}

async function measure(): Promise<void> {
  const [busy, other] = [await connect(process.execArgv), await connect([])]
  const told = { trips: 0, others: 0, timers: 0, immediates: 0, late: 0 }
  let isDue = false
  const begunAt = performance.now()
  busy.on('data', () => {
    if (++told.trips === TRIPS_MIN) other.write('y')
    // Had the event loop to run it, no answer may overtake it.
    if (isDue) told.late++
    if (told.trips % 16 === 0) {
      isDue = true
      setImmediate(() => {
        isDue = false
        told.immediates++
      })
    }
    busy.write('x')
  })
  other.on('data', () => {
    told.others++
    other.write('y')
  })
  busy.write('x')
  const timer = setInterval(() => {
    told.timers++
    const isOften = told.trips >= TRIPS_MIN && told.others >= OFTEN && told.timers >= OFTEN
    if (!isOften && performance.now() - begunAt < TIME_MS) return
    clearInterval(timer)
    process.send?.(told, () => process.exit())
  }, 1)
}

if (process.argv[2] === 'server') {
  process.on('disconnect', () => process.exit())
  serve()
} else await measure()
