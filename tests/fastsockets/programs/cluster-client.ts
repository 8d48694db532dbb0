/** A cluster whose worker connects to a server in another process, and reports. argv: port */
import cluster from 'node:cluster'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

if (cluster.isPrimary) {
  const worker = cluster.fork()
  worker.once('message', report => process.send?.(report, () => worker.kill()))
} else {
  const socket = net.connect(Number(process.argv[2]), '127.0.0.1', () => socket.end('hello'))
  socket.once('data', data => process.send?.({ text: String(data), ...transportOf(socket) }))
}
