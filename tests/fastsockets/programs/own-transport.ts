/** A server and its client in one process: says by what they are connected, and where the server is. */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const server = net.createServer(socket => socket.pipe(socket))
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as net.AddressInfo
  const socket = net.connect(port, '127.0.0.1', () => {
    const { transport, reason } = transportOf(socket)
    process.send?.({ port, transport, reason })
  })
})
process.on('disconnect', () => process.exit())
