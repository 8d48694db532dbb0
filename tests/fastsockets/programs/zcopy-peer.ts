/**
 * A server with one connection, which follows commands: { pause }, { resume }, { write: bytes }, { destroy }. Prints `{
 * port }`, and answers { report } with what has come so far. Sent and expected bytes are `patternAt` each position.
 */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { isPatterned, patterned } from '../../support/pattern.ts'

let connection: net.Socket | undefined
let received = 0
let sent = 0
let isIntact = true
let isWritten = true
let ended: string | undefined

const server = net.createServer({ allowHalfOpen: true }, socket => {
  connection = socket
  socket.on('data', data => {
    isIntact &&= isPatterned(data, received)
    received += data.length
  })
  socket.on('end', () => {
    ended ??= 'end'
  })
  socket.on('error', error => {
    ended = (error as NodeJS.ErrnoException).code
  })
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))

process.on('disconnect', () => process.exit())
process.on('message', (order: { pause?: 1; resume?: 1; write?: number; destroy?: 1; report?: 1 }) => {
  if (order.pause) connection?.pause()
  if (order.resume) connection?.resume()
  if (order.destroy) connection?.destroy()
  if (order.write !== undefined) {
    isWritten = false
    connection?.write(patterned(sent, order.write), () => {
      isWritten = true
    })
    sent += order.write
  }
  if (order.report) {
    const counts = connection && transportOf(connection).counts
    process.send?.({ received, isIntact, isWritten, ended, counts, paused: connection?.isPaused() })
  }
})
