/** Connects, echoes once, and reports which wire it was and why. argv: port */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/transport.ts'

const socket = net.connect(Number(process.argv[2]), '127.0.0.1', () => socket.end('hello'))
socket.once('data', () => {
  process.send?.(transportOf(socket), () => process.disconnect?.())
  socket.destroy()
})
