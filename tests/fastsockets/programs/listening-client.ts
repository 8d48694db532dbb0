/**
 * Listens, prints its port, and is the client of each port that it is sent: reports the wire and the bytes that come
 * back.
 */
import { once } from 'node:events'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const server = net
  .createServer(socket => socket.pipe(socket))
  .listen(0, '127.0.0.1', () => {
    process.send?.({ port: (server.address() as net.AddressInfo).port })
  })
process.on('disconnect', () => process.exit())
process.on('message', async ({ port }: { port: number }) => {
  const socket = net.connect(port, '127.0.0.1')
  socket.write('who is there?')
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  process.send?.({ transport: transportOf(socket).transport, answer: bytes.toString() })
  socket.destroy()
})
