/** An echo on a unix path, or a client of one, which reports its wire, or how it failed. argv: server | client path */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

// A zero byte cannot be an argument's.
const [role, name = ''] = process.argv.slice(2)
const path = name.replace(/^@/, '\0')
process.on('disconnect', () => process.exit())

if (role === 'server') {
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  server.listen(path, () => process.send?.({ isListening: true }))
} else {
  const socket = net.connect(path, () => socket.write('hello'))
  socket.on('data', () => process.send?.(transportOf(socket)))
  socket.on('end', () => process.send?.({ ended: true }))
  socket.on('error', (error: NodeJS.ErrnoException) => process.send?.({ failed: error.code, ended: true }))
}
