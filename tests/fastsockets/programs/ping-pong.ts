/** argv: server | client port. The client sends a byte as soon as it has the one before back, for ever. */
import net from 'node:net'

const [role, port] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

if (role === 'server') {
  const server = net.createServer({ noDelay: true }, socket => socket.on('data', data => socket.write(data)))
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
} else {
  const byte = Buffer.alloc(1)
  const socket = net.connect({ host: '127.0.0.1', port: Number(port), noDelay: true }, () => {
    socket.write(byte)
    process.send?.({ connected: true })
  })
  socket.on('data', () => socket.write(byte))
}
