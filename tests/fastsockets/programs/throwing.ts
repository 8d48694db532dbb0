/** Throws in every other 'data' listener call, and survives it. argv: flowing | paused */
import net from 'node:net'

const [mode] = process.argv.slice(2)
const BYTES = 3_000_000
let thrown = 0
let calls = 0
let received = 0
process.on('uncaughtException', () => {
  thrown++
})

const server = net.createServer(socket => socket.end(Buffer.alloc(BYTES)))
server.listen(0, '127.0.0.1', () => {
  const socket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  if (mode === 'paused') {
    socket.pause()
    setTimeout(() => socket.resume(), 100)
  }
  socket.on('end', () => process.send?.({ received, thrown, ended: true }, () => process.exit()))
  socket.on('data', data => {
    received += data.length
    if (calls++ % 2 === 0) throw new Error('on purpose')
  })
})
