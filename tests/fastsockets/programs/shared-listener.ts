/**
 * A listener in a container that several threads have: argv: 'cluster', 'reusePort' (processes) or 'thread' (one worker thread), and the port.
 * Each sends its name and wire to every client. Says `{ listening }` once all listen. Message { kill: true }: kills one
 * of them, and answers. Message { leave: true }, with a worker thread: ends the process.
 */
import { type ChildProcess, fork } from 'node:child_process'
import cluster from 'node:cluster'
import { once } from 'node:events'
import net from 'node:net'
import { isMainThread, parentPort, threadId, Worker } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const COUNT = 2
const [kind = 'cluster', port = '0', isServer] = process.argv.slice(2)

async function serve(): Promise<void> {
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.end(`${process.pid}-${threadId} ${transportOf(socket).transport}`)
  })
  server.listen({ port: Number(port), host: '0.0.0.0', reusePort: kind === 'reusePort' })
  await once(server, 'listening')
}

if (!isMainThread) {
  await serve()
  parentPort?.postMessage('listening')
} else if (isServer !== undefined || cluster.isWorker) {
  await serve()
  process.send?.('listening')
} else if (kind === 'thread') {
  const worker = new Worker(new URL(import.meta.url), { argv: [kind, port] })
  await once(worker, 'message')
  process.send?.({ listening: 1 })
  process.on('message', ({ leave }: { leave?: true }) => {
    if (leave) process.exit()
    void worker.terminate().then(() => process.send?.({ killed: 1 }))
  })
} else {
  const start = (): ChildProcess =>
    kind === 'cluster' ? cluster.fork().process : fork(new URL(import.meta.url), [kind, port, 'server'])
  const children = Array.from({ length: COUNT }, start)
  await Promise.all(children.map(child => once(child, 'message')))
  process.send?.({ listening: COUNT })
  process.on('message', () => {
    children[0]?.once('exit', () => process.send?.({ killed: 1 }))
    children[0]?.kill('SIGKILL')
  })
}
process.on('disconnect', () => process.exit())
