/** A worker of a cluster listens by a raw server; the primary prints its process id. */
import cluster from 'node:cluster'
import { listen } from '../../../fastsockets/raw/index.ts'

if (cluster.isPrimary) {
  const worker = cluster.fork()
  worker.once('message', () => process.send?.({ pid: worker.process.pid }))
  process.on('disconnect', () => process.exit())
} else {
  await listen({ host: '127.0.0.1' })
  process.send?.('listening')
}
