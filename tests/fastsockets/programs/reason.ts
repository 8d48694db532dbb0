/** Connects, echoes once, and reports which wire it was and why; or how it failed. argv: port [host] */
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const [port = '0', host = '127.0.0.1'] = process.argv.slice(2)
const socket = net.connect(Number(port), host, () => socket.end('hello'))
socket.on(
  'error',
  (error: NodeJS.ErrnoException & { reason?: { code: string }; cause?: { code: string } }) => {
    const { code, reason, cause } = error
    process.send?.({ failed: code, reason: reason?.code, cause: cause?.code }, () => process.disconnect?.())
  },
)
socket.once('data', () => {
  process.send?.(transportOf(socket), () => process.disconnect?.())
  socket.destroy()
})
