/**
 * Ends a socket from a timer, from an immediate, from a callback of a file and from a 'data' listener, and sets an
 * immediate. Reports which of 'finish' and the immediate comes first. Then two sockets get data at once, and the first
 * 'data' listener ends its socket: reports whether the other one runs before 'finish'. The peer does not answer an end.
 */
import { once } from 'node:events'
import { stat } from 'node:fs'
import net, { type AddressInfo, type Socket } from 'node:net'

const ROUNDS = 20

const accepted: Socket[] = []
const server = net.createServer({ allowHalfOpen: true }, socket => {
  accepted.push(socket)
  socket.write('x')
  socket.resume()
})
await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
const { port } = server.address() as AddressInfo
const orders = new Set<string>()

type From = (action: () => void, socket: Socket) => void
const FROM: Readonly<Record<string, From>> = {
  timer: action => setTimeout(action, 1),
  immediate: action => setImmediate(action),
  file: action => stat('/', action),
  data: (action, socket) => socket.once('data', action),
}

for (const [name, from] of Object.entries(FROM)) {
  for (let round = 0; round < ROUNDS; round++) {
    const socket = net.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    if (name !== 'data') await once(socket, 'data')
    const first = await new Promise<string>(resolve => {
      from(() => {
        socket.end()
        socket.once('finish', () => resolve('finish'))
        setImmediate(() => resolve('immediate'))
      }, socket)
    })
    orders.add(`${name}: ${first}`)
    socket.destroy()
  }
}

const pair = [net.connect(port, '127.0.0.1'), net.connect(port, '127.0.0.1')]
await Promise.all(pair.map(socket => once(socket, 'data')))
const heard: string[] = []
const isHeard = Promise.all(pair.map(socket => once(socket, 'data')))
for (const socket of pair) {
  socket.once('data', () => {
    heard.push('data')
    if (heard.length > 1) return
    socket.once('finish', () => heard.push('finish'))
    socket.end()
  })
}
for (const socket of accepted.slice(-2)) socket.write('y')
await isHeard
await new Promise(resolve => setTimeout(resolve, 20))
orders.add(`pair: ${heard.join(', ')}`)
process.send?.([...orders].sort(), () => process.exit())
