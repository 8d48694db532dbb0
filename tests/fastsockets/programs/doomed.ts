/** Connects, says so, writes now and then, and waits to be killed. argv: port */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const socket = net.connect(Number(process.argv[2]), '127.0.0.1', () => {
  setInterval(() => socket.write('still here'), 1)
  tell()
})
/** A server that is too busy to answer has given no port yet. */
function tell(): void {
  const { localPort } = socket
  if (localPort === undefined) setTimeout(tell, 1)
  else process.send?.({ localPort, ...transportOf(socket) })
}

socket.on('error', () => process.exit(1))
process.on('disconnect', () => process.exit())
