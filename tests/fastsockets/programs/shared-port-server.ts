/**
 * Servers that share one port by `reusePort`; each sends its name to every client. argv: port, how many, and in what:
 * 'process', 'threads' or 'cluster'. When all listen it prints the hashed ports of all.
 */
import cluster from 'node:cluster'
import diagnostics from 'node:diagnostics_channel'
import net from 'node:net'
import { isMainThread, parentPort, threadId, Worker } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const args = process.argv.slice(2)
const [port = '0', count = '1', kind = 'process'] = args

const hashedPorts: number[] = []
const noteListening = (hashedPort: number): void => {
  hashedPorts.push(hashedPort)
  if (hashedPorts.length === Number(count)) process.send?.(hashedPorts)
}

function serve(onListening: (hashedPort: number) => void): void {
  diagnostics.subscribe('fastsockets:listening', event => {
    onListening((event as { readonly hashedPort: number }).hashedPort)
  })
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    const who = `${process.pid} ${threadId}`
    socket.end(JSON.stringify({ who, transport: transportOf(socket).transport }))
  })
  const place = { port: Number(port), host: '127.0.0.1', reusePort: true }
  server.listen(place)
}

if (!isMainThread) serve(port => parentPort?.postMessage(port))
else if (cluster.isWorker) serve(port => process.send?.(port))
else if (kind === 'process') serve(noteListening)
else {
  for (let i = 0; i < Number(count); i++) {
    if (kind === 'threads') new Worker(new URL(import.meta.url), { argv: args }).on('message', noteListening)
    else cluster.fork().on('message', noteListening)
  }
}
process.on('disconnect', () => process.exit())
