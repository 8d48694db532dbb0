/**
 * An ordinary TCP client that connects to one port after the other and says how long each took, in milliseconds.
 *
 *   argv: port…
 */
import { once } from 'node:events'
import net from 'node:net'

const times: number[] = []
for (const port of process.argv.slice(2).map(Number)) {
  const startMs = performance.now()
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  times.push(performance.now() - startMs)
  socket.destroy()
}
process.send?.({ times }, () => process.exit())
