/**
 * The listener of one event throws, out of a next tick. argv: the event, and `handled` if there is to be a handler of uncaught
 * exceptions, which sends what it has heard.
 */
import net, { type AddressInfo } from 'node:net'

const [event = 'end', handling] = process.argv.slice(2)

if (handling === 'handled')
  process.on('uncaughtException', error => process.send?.(error.message, () => process.exit()))

const server = net.createServer(socket => {
  socket.resume()
  socket.write('x')
  socket.on('end', () => socket.end())
})
server.listen(0, '127.0.0.1', () => {
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.once(event, () => {
    throw new Error(`thrown at ${event}`)
  })
  socket.resume()
  socket.end('x')
})
