/** A server of http2 that says { port }, and, when asked, how often it has written to its connection: { writes }. */
import http2 from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'

type Handle = { writev(...args: unknown[]): number }

let writes = 0
const server = http2.createServer()
// Before http2 takes the handle.
server.prependListener('connection', (socket: Socket) => {
  const { _handle: handle } = socket as unknown as { _handle: Handle }
  const { writev } = handle
  handle.writev = (...args) => {
    writes++
    return writev.apply(handle, args)
  }
})
server.on('stream', stream => {
  stream.respond({ ':status': 200 })
  stream.end('hello')
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('message', () => process.send?.({ writes }))
