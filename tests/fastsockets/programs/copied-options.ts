/**
 * argv: a port to connect to; listens if there is none, and tells its own. Constructs as many sockets as it is sent, or
 * connects as often, with options that it spreads.
 */
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
process.on('message', async ({ count, isSpread }: { count: number; isSpread?: boolean }) => {
  if (isSpread === true) await connectOften({ host: '127.0.0.1', port: Number(port) }, count)
  else for (let i = 0; i < count; i++) sockets.push(new net.Socket({ allowHalfOpen: true, readable: true }))
  process.send?.({ done: count })
})

async function connectOften(to: net.TcpNetConnectOpts, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const socket = net.connect({ ...to, noDelay: true })
    await once(socket, 'connect')
    await once(socket.destroy(), 'close')
  }
}
