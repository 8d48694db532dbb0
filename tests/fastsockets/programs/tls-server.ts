/** Says hello over TLS on 127.0.0.1, and that it has heard what came. Says { port }. */
import type net from 'node:net'
import tls from 'node:tls'
import { credentials } from './dialogue.ts'

const server = tls.createServer(credentials(), socket => {
  socket.on('error', () => {})
  socket.on('data', data => socket.end(`heard ${data}`))
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
process.on('disconnect', () => process.exit())
