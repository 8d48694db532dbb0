/**
 * Counts the bytes of garbage that one round trip over a `net.Socket` makes in the client: no scavenge may come in
 * between, hence the large new space that the test starts this with. argv: port of an echo server.
 */
import net from 'node:net'
import { transportOf } from '../../fastsockets/handle/transport.ts'

const TRIPS = 10_000
const ROUNDS = 8
const SIZE = 64

const socket = net.connect({ port: Number(process.argv[2]), host: '127.0.0.1', noDelay: true })
const message = Buffer.alloc(SIZE, 7)
let left = 0
let finish = (): void => {}
socket.on('data', () => {
  if (--left > 0) socket.write(message)
  else finish()
})
socket.once('connect', async () => {
  let least = Number.POSITIVE_INFINITY
  // The first rounds compile, which allocates, too.
  for (let round = 0; round < ROUNDS; round++) {
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    await new Promise<void>(resolve => {
      left = TRIPS
      finish = resolve
      socket.write(message)
    })
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / TRIPS)
  }
  process.send?.({ bytes: least, transport: transportOf(socket).transport }, () => process.exit())
})
