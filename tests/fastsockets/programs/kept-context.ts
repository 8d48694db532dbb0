/**
 * Opens a connection with something in an AsyncLocalStorage, and a second one without, which stays: says whether that something
 * is collected once the first has closed. argv: port, or nothing for a server of its own.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { collectGarbage } from '../../support/garbage.ts'

const COLLECTIONS = 100

const storage = new AsyncLocalStorage<object>()
const port = Number(process.argv[2] ?? (await serve()))
const held = await useOnce()
const kept = net.connect(port, '127.0.0.1')
await once(kept, 'connect')
for (let i = 0; i < COLLECTIONS && held.deref() !== undefined; i++) {
  await delay(10)
  await collectGarbage()
}
process.send?.({ transport: transportOf(kept).transport, isHeld: held.deref() !== undefined })
process.on('disconnect', () => process.exit())

/** In a turn of its own: nothing of it is left in the caller's. */
async function useOnce(): Promise<WeakRef<object>> {
  const store = { what: 'a request of the program' }
  const socket = storage.run(store, () => net.connect(port, '127.0.0.1'))
  await once(socket, 'connect')
  socket.end()
  socket.resume()
  await once(socket, 'close')
  return new WeakRef(store)
}

async function serve(): Promise<number> {
  const server = net.createServer(socket => void socket.resume().on('end', () => socket.end()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}
