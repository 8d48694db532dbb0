/**
 * An echo of UDP whose socket has an unusual owner. argv: 'cluster' (a worker shares it with its primary), 'thread' (a worker thread has it),
 * or 'sent' (once asked, a child process gets it, too). It says { port }, and answers each message with the socket's transport.
 */
import { fork } from 'node:child_process'
import cluster from 'node:cluster'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { datagramTransportOf } from '../../../fastsockets/datagram/datagram-transport.ts'

const [owner, role = ''] = process.argv.slice(2)

function openEcho(say: (message: object) => void): dgram.Socket {
  const socket = dgram.createSocket('udp4')
  socket.on('message', (bytes, { port, address }) => socket.send(bytes, port, address))
  socket.bind(0, '127.0.0.1', () => say({ port: socket.address().port }))
  return socket
}

if (role === 'child') {
  process.on('message', (_message, handle) => {
    const socket = handle as dgram.Socket
    socket.on('message', (bytes, { port, address }) => socket.send(bytes, port, address))
    process.send?.({})
  })
  process.on('disconnect', () => process.exit())
} else if (owner === 'thread' && isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { argv: [owner] })
  worker.on('message', message => process.send?.(message))
  process.on('message', message => worker.postMessage(message))
} else if (owner === 'thread') {
  const socket = openEcho(message => parentPort?.postMessage(message))
  parentPort?.on('message', () => parentPort?.postMessage(datagramTransportOf(socket)))
} else if (owner === 'cluster' && cluster.isPrimary) {
  const worker = cluster.fork()
  worker.on('message', message => process.send?.(message))
  process.on('message', message => worker.send(message as object))
  process.on('disconnect', () => process.exit())
} else {
  const socket = openEcho(message => process.send?.(message))
  process.on('message', async ({ send }: { send?: true }) => {
    if (send) {
      const child = fork(new URL(import.meta.url), ['sent', 'child'])
      child.send({}, socket)
      await once(child, 'message')
    }
    process.send?.(datagramTransportOf(socket))
  })
  process.on('disconnect', () => process.exit())
}
