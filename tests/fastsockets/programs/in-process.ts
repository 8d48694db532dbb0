/** Server and client in one process. argv: close (both ends) or stay (open) */
import net from 'node:net'

const [what] = process.argv.slice(2)

const server = net.createServer(socket => {
  socket.resume()
  server.close()
  if (what === 'close') socket.end()
})
server.listen(0, '127.0.0.1', () => {
  const socket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1', () => {
    if (what === 'close') socket.end()
    process.send?.('connected', () => process.disconnect())
  })
  socket.resume()
})
