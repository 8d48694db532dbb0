/**
 * argv: 'server', or 'client', a port, and who speaks first. The server says { port }, then of each connection { transport } as its listener sees it,
 * or { refused } with the client's port; it greets or echoes, by the same word. The client says what it receives, or its error.
 */
import diagnostics from 'node:diagnostics_channel'
import net, { type AddressInfo } from 'node:net'
import { transportOf } from '../../../fastsockets/index.ts'

const [role, port = '', first = 'server'] = process.argv.slice(2)

if (role === 'server') {
  const server = net.createServer(socket => {
    process.send?.({ transport: transportOf(socket).transport, port: socket.remotePort })
    socket.on('error', () => socket.destroy())
    if (first === 'server') socket.write('hello')
    socket.on('data', bytes => socket.write(bytes))
    socket.on('end', () => socket.end())
  })
  diagnostics.subscribe('fastsockets:refused', message => {
    const { remote } = message as { remote: { port: number } }
    process.send?.({ refused: remote.port })
  })
  server.listen(Number(port), '127.0.0.1', () => {
    process.send?.({ port: (server.address() as AddressInfo).port })
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
