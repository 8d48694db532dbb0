/** A cluster whose primary connects to the port that its worker listens on. */
import cluster from 'node:cluster'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

if (cluster.isPrimary) {
  const worker = cluster.fork()
  worker.once('listening', address => {
    const socket = net.connect(address.port, '127.0.0.1')
    socket.on('data', data => {
      process.send?.({ text: String(data), transport: transportOf(socket).transport }, () => {
        worker.kill()
        process.exit()
      })
    })
  })
} else {
  net.createServer(socket => socket.end('from a worker')).listen(0, '127.0.0.1')
}
