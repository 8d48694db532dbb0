/**
 * An echo server that is also a client. It makes round trips on request, with pauses, and reports how many turns of
 * this process's poller were empty meanwhile; without a request, how many in all.
 */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { pollerStats } from '../../../am/index.ts'

interface Question {
  readonly port?: number
  readonly roundTrips?: number
}

const PAUSE_MS = 5

const server = net.createServer({ noDelay: true }, accepted => accepted.pipe(accepted))
await once(server.listen(0, '127.0.0.1'), 'listening')
process.send?.({ port: (server.address() as net.AddressInfo).port })
process.on('disconnect', () => process.exit())

let socket: net.Socket | undefined

process.on('message', async ({ port, roundTrips = 0 }: Question) => {
  if (port !== undefined && socket === undefined) {
    socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
  }
  for (let i = 0; i < roundTrips; i++) {
    socket?.write('x')
    await once(socket as net.Socket, 'data')
    await sleep(PAUSE_MS)
  }
  const { emptyTurns, messages } = pollerStats()
  process.send?.({ emptyTurns, messages })
})
