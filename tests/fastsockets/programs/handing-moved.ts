/**
 * Listens, and hands a connection to a child (handed-child.ts) once its client says 'hand'; answers anything else with what carries it.
 * Says { port }, then what the child says. The child is asked for nothing before: the client starts on TCP, and has moved by then.
 */
import { fork } from 'node:child_process'
import net, { type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { transportOf } from '../../../fastsockets/index.ts'

const child = fork(fileURLToPath(new URL('./handed-child.js', import.meta.url)), { execArgv: [] })
child.on('message', message => process.send?.(message))

const server = net.createServer({ noDelay: true }, socket => {
  socket.on('error', () => {})
  socket.on('data', bytes => {
    if (String(bytes) !== 'hand') return socket.write(transportOf(socket).transport)
    socket.removeAllListeners('data').pause()
    child.send({ hand: 'socket' }, socket)
    return child.send({ hand: 'nothing' })
  })
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
