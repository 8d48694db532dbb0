/** Connects and leaves at once, many times. argv: port, how often, and whether a byte is said before. */
import { once } from 'node:events'
import net from 'node:net'

const [, , port = '', count = '', says = ''] = process.argv
for (let i = 0; i < Number(count); i++) {
  const socket = net.connect(Number(port), '127.0.0.1', () => {
    if (says !== '') socket.write('x')
    socket.destroy()
  })
  socket.on('error', () => {})
  await once(socket, 'close')
}
process.send?.({ done: true })
