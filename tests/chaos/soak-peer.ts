/** The other process of a soak: echoes on one port, and checks a stream on the other. */
import net, { type AddressInfo, type Server } from 'node:net'
import { liveMemory } from '../support/garbage.ts'
import { PatternReader } from './pattern.ts'
import type { Account, Ports } from './soak.ts'

const echo = net.createServer(socket => {
  socket.on('error', () => {})
  socket.on('data', data => socket.write(data))
})
const sink = net.createServer({ allowHalfOpen: true }, socket => {
  const reader = new PatternReader(socket)
  socket.on('error', () => {})
  socket.on('end', async () => {
    const account: Account = { bytes: reader.position, wrongAt: reader.wrongAt, live: await liveMemory() }
    socket.end(JSON.stringify(account))
  })
})

function listen(server: Server): Promise<number> {
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

const ports: Ports = { echo: await listen(echo), sink: await listen(sink) }
process.send?.(ports)
process.on('disconnect', () => process.exit())
