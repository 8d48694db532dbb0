/**
 * argv: serve | call PORT | both. Time stands still in this program: the timers and clocks that it has put in the place of
 * Node's never run. A server echoes; a client sends, hears all of it, and the end.
 */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import timers from 'node:timers'
import promises from 'node:timers/promises'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const LENGTH = 3_000_000
const HALF = 2
const [role, port = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

const standStill = (): object => ({ ref() {}, unref() {}, hasRef: () => true })
const never = (): Promise<never> => new Promise(() => {})
for (const place of [globalThis, timers])
  Object.assign(place, { setTimeout: standStill, setInterval: standStill, setImmediate: standStill })
Object.assign(promises, { setTimeout: never, setImmediate: never })
Object.assign(globalThis, { queueMicrotask() {} })
Object.defineProperty(globalThis, 'performance', { value: { now: () => 0 } })
Date.now = () => 0

async function serve(): Promise<number> {
  const server = net.createServer({ allowHalfOpen: true }, socket => socket.pipe(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function call(to: number): Promise<object> {
  const socket = net.connect({ port: to, host: '127.0.0.1', allowHalfOpen: true })
  let received = 0
  socket.on('data', data => {
    received += data.length
  })
  await once(socket, 'connect')
  socket.write('small')
  socket.write(Buffer.alloc(LENGTH / HALF))
  socket.end(Buffer.alloc(LENGTH / HALF))
  await once(socket, 'end')
  const { transport, reason } = transportOf(socket)
  await once(socket, 'close')
  return { wire: reason === undefined ? transport : `${transport} ${reason.code}`, received }
}

if (role === 'serve') process.send?.({ port: await serve() })
else process.send?.(await call(role === 'both' ? await serve() : Number(port)))
