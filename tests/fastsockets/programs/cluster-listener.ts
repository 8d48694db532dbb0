/** A worker of a cluster listens; the primary tells its process id. */
import cluster from 'node:cluster'
import net from 'node:net'

if (cluster.isPrimary) {
  const worker = cluster.fork()
  worker.once('listening', () => process.send?.({ pid: worker.process.pid }))
  process.on('disconnect', () => process.exit())
} else {
  net.createServer().listen(0, '127.0.0.1')
}
