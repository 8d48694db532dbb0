/** argv: server | client port bytes. The server echoes; the client sends and checks that all of it comes back. */
import { createHash, randomBytes } from 'node:crypto'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { HOST } from '../../support/placement.ts'

const [role, port = '0', size = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

if (role === 'server') {
  const server = net.createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  server.listen(0, HOST, () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
} else {
  const total = Number(size)
  const hashSent = createHash('sha256')
  const hashReceived = createHash('sha256')
  let sent = 0
  let received = 0
  const socket = net.connect(Number(port), HOST, write)
  socket.on('data', data => {
    received += data.length
    hashReceived.update(data)
  })
  socket.on('end', () => {
    process.send?.({
      transport: transportOf(socket).transport,
      sent,
      received,
      sha256Sent: hashSent.digest('hex'),
      sha256Received: hashReceived.digest('hex'),
    })
  })

  /** Chunks of many sizes, some larger than the window, some tiny. */
  function write(): void {
    while (sent < total) {
      const chunk = randomBytes(Math.min(1 + Math.floor(Math.random() ** 4 * 2_000_000), total - sent))
      sent += chunk.length
      hashSent.update(chunk)
      if (!socket.write(chunk)) {
        socket.once('drain', write)
        return
      }
    }
    socket.end()
  }
}
