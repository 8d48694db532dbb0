/** Echoes every byte; ends when standard input ends. */
import net from 'node:net'

export interface EchoServerReady {
  readonly port: number
}

const server = net.createServer({ noDelay: true }, socket => {
  socket.on('data', bytes => socket.write(bytes))
  socket.on('error', () => {})
})
server.listen(0, '127.0.0.1', () => {
  const ready: EchoServerReady = { port: (server.address() as net.AddressInfo).port }
  console.log(JSON.stringify(ready))
})
process.stdin.resume().once('end', () => process.exit(0))
