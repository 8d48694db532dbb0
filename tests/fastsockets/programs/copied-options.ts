/** argv: a port to connect to; listens if there is none, and tells its own. Constructs as many sockets as it is sent. */
import { once } from 'node:events'
import net from 'node:net'

const [, , port] = process.argv
const sockets: net.Socket[] = []

if (port === undefined) {
  const server = net.createServer(socket => socket.resume())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  process.send?.({ port: (server.address() as net.AddressInfo).port })
} else {
  const socket = net.connect(Number(port), '127.0.0.1')
  await once(socket, 'connect')
  process.send?.({ isConnected: true })
}
process.on('message', ({ count }: { count: number }) => {
  for (let i = 0; i < count; i++) sockets.push(new net.Socket({ allowHalfOpen: true, readable: true }))
  process.send?.({ constructed: sockets.length })
})
