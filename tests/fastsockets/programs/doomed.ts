/** Connects, says so, writes now and then, and waits to be killed. argv: port */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/transport.ts'

const socket = net.connect(Number(process.argv[2]), '127.0.0.1', () => {
  process.send?.({ localPort: socket.localPort, ...transportOf(socket) })
  setInterval(() => socket.write('still here'), 1)
})
socket.on('error', () => process.exit(1))
process.on('disconnect', () => process.exit())
