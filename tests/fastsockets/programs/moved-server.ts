/**
 * A server that is moved to a worker. Tells { port, hashedPorts }: the one that it had in the main thread, and in the worker;
 * then, of each connection, the thread that has it and its transport.
 */
import diagnostics from 'node:diagnostics_channel'
import net from 'node:net'
import { isMainThread, parentPort, threadId, Worker } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

type Listening = { readonly hashedPort: number }

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url))
  const hashedPorts: number[] = []
  diagnostics.subscribe('fastsockets:listening', event => hashedPorts.push((event as Listening).hashedPort))
  const server = net.createServer()
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as net.AddressInfo
    worker.on('message', (message: { hashedPort?: number }) => {
      if (message.hashedPort === undefined) return process.send?.(message)
      hashedPorts.push(message.hashedPort)
      return process.send?.({ port, hashedPorts })
    })
    worker.once('online', () => setImmediate(() => worker.postMessage(server, [server as never])))
  })
  process.on('disconnect', () => process.exit())
} else {
  diagnostics.subscribe('fastsockets:listening', event => {
    parentPort?.postMessage({ hashedPort: (event as Listening).hashedPort })
  })
  parentPort?.on('message', (server: net.Server) => {
    server.on('connection', socket => {
      parentPort?.postMessage({ thread: threadId, transport: transportOf(socket).transport })
      socket.end()
    })
  })
}
