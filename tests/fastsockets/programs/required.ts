/**
 * argv: 'server', 'client', or 'thread' or 'cluster' for a server in a worker; a port, and who speaks first. The server says { port }, then of each connection { transport } as its listener sees it,
 * or { refused } with the client's port; it greets or echoes, by the same word. The client says what it receives, or its error.
 */
import cluster from 'node:cluster'
import diagnostics from 'node:diagnostics_channel'
import net, { type AddressInfo } from 'node:net'
import { parentPort, Worker } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/index.ts'

const [role, port = '', first = 'server'] = process.argv.slice(2)

const say = (message: object): void =>
  parentPort ? parentPort.postMessage(message) : void process.send?.(message)

if (role === 'thread') {
  new Worker(new URL(import.meta.url), { argv: ['server', port, first] }).on('message', say)
} else if (role === 'cluster' && cluster.isPrimary) {
  cluster.fork().on('message', say)
} else if (role !== 'client') {
  const server = net.createServer(socket => {
    say({ transport: transportOf(socket).transport, port: socket.remotePort })
    socket.on('error', () => socket.destroy())
    if (first === 'server') socket.write('hello')
    socket.on('data', bytes => socket.write(bytes))
    socket.on('end', () => socket.end())
  })
  diagnostics.subscribe('fastsockets:refused', message => {
    const { remote } = message as { remote: { port: number } }
    say({ refused: remote.port })
  })
  server.listen(Number(port), '127.0.0.1', () => {
    say({ port: (server.address() as AddressInfo).port })
  })
} else {
  const socket = net.connect({ port: Number(port), host: '127.0.0.1' })
  socket.on('error', ({ code }: NodeJS.ErrnoException) => process.send?.({ error: code }))
  socket.on('end', () => process.send?.({ end: true }))
  if (first === 'client') socket.write('hello')
  socket.once('data', bytes => {
    process.send?.({ data: String(bytes), port: socket.localPort })
    socket.once('data', more => process.send?.({ data: String(more) }))
    socket.write('again')
  })
  process.on('message', () => socket.end())
}
