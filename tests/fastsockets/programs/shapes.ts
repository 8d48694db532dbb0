/**
 * argv: host and port of a server. Connects twice, once when nothing is known of the server and once when it is; tells the
 * wire, and whether V8 has given both sockets one shape, when they are up and when they are closed. Needs `--allow-natives-syntax`.
 */
import { once } from 'node:events'
import net, { type Socket } from 'node:net'
import { transportOf } from '../../../fastsockets/index.ts'

const [host = '', port] = process.argv.slice(2)
const haveOneShape = new Function('a', 'b', 'return %HaveSameMap(a, b)') as (a: Socket, b: Socket) => boolean

async function connect(): Promise<Socket> {
  const socket = net.connect(Number(port), host)
  await once(socket, 'connect')
  return socket
}

const first = await connect()
const second = await connect()
const whileUp = haveOneShape(first, second)
const { transport } = transportOf(first)
for (const socket of [first, second]) {
  socket.destroy()
  await once(socket, 'close')
}
process.send?.({ transport, whileUp, whenClosed: haveOneShape(first, second) })
