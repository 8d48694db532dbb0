/** Sends its parent the stack of an error that a listener makes when data arrives. */
import net, { type AddressInfo } from 'node:net'

Error.stackTraceLimit = 50
const server = net
  .createServer(socket => socket.end('answer'))
  .listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo
    net.connect(port, '127.0.0.1').once('data', () => {
      process.send?.(new Error('expected').stack)
      server.close()
      process.disconnect()
    })
  })
