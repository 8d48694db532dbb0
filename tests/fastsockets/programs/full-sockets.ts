/** Opens so many sockets to a port, and writes to each. */
import { once } from 'node:events'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/index.ts'

const [port, count] = process.argv.slice(2).map(Number)
const sockets: net.Socket[] = []
for (let i = 0; i < (count as number); i++) {
  const socket = net.connect(port as number, '127.0.0.1')
  await once(socket, 'connect')
  await new Promise(resolve => socket.write('a few bytes', resolve))
  sockets.push(socket)
}
const [first] = sockets as [net.Socket]
process.send?.({ written: sockets.length, transport: transportOf(first).transport })
process.on('disconnect', () => process.exit())
