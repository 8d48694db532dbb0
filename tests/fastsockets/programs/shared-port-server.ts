/**
 * Servers that share one port by `reusePort`; each says who it is to whoever connects. argv: port, how many, and in what:
 * 'process', 'threads' or 'cluster'. Tells 'listening' when all do.
 */
import cluster from 'node:cluster'
import net from 'node:net'
import { isMainThread, parentPort, threadId, Worker } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const args = process.argv.slice(2)
const [port = '0', count = '1', kind = 'process'] = args

let left = Number(count)
const noteListening = (): void => {
  if (--left === 0) process.send?.('listening')
}

function serve(onListening: () => void): void {
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    const who = `${process.pid} ${threadId}`
    socket.end(JSON.stringify({ who, transport: transportOf(socket).transport }))
  })
  const place = { port: Number(port), host: '127.0.0.1', reusePort: true }
  server.listen(place, onListening)
}

if (!isMainThread) serve(() => parentPort?.postMessage('listening'))
else if (cluster.isWorker) serve(() => process.send?.('listening'))
else if (kind === 'process') serve(noteListening)
else {
  for (let i = 0; i < Number(count); i++) {
    if (kind === 'threads') new Worker(new URL(import.meta.url), { argv: args }).on('message', noteListening)
    else cluster.fork().on('message', noteListening)
  }
}
process.on('disconnect', () => process.exit())
