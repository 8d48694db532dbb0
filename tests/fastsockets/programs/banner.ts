/** Greets each connection with a long banner, at once. argv: bytes */
import net from 'node:net'

const banner = Buffer.alloc(Number(process.argv[2]))
const server = net.createServer(socket => {
  socket.on('error', () => {})
  socket.end(banner)
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
process.on('disconnect', () => process.exit())
