/**
 * A server, and a client that moves very many connections at once. argv: 'server', or 'client', a port and the number of connections. The
 * server says its port. The client says 'open', and writes to all when told; it reports once all have moved, and the server when asked:
 * what was done at most in one turn of its event loop.
 */
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'

const [role, port, count] = process.argv.slice(2)

/** Of one turn, and the most of any. `names`: calls of getpeername(2). */
const [now, most] = [
  { moves: 0, names: 0 },
  { moves: 0, names: 0 },
]

function countTurn(): void {
  for (const key of ['moves', 'names'] as const) {
    most[key] = Math.max(most[key], now[key])
    now[key] = 0
  }
  setImmediate(countTurn).unref()
}

/** Counts what the handles of this kind are asked for. */
function countNames(socket: Socket): void {
  const prototype = Object.getPrototypeOf((socket as unknown as { _handle: object })._handle)
  const { getpeername } = prototype
  prototype.getpeername = function (this: object, out: object): number {
    now.names++
    return getpeername.call(this, out)
  }
}

let moved = 0
diagnostics.subscribe('fastsockets:promoted', () => {
  moved++
  now.moves++
})
if (role === 'server') {
  const server = net.createServer(socket => socket.on('data', data => socket.write(data)))
  server.once('connection', countNames).listen(0, '127.0.0.1', 1024, () => {
    process.send?.((server.address() as AddressInfo).port)
  })
  process.on('message', () => process.send?.({ moved, most }))
} else {
  const all: Socket[] = []
  for (let i = 0; i < Number(count); i++) {
    const socket = net.connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    all.push(socket.resume())
  }
  process.send?.('open')
  await once(process, 'message')
  countTurn()
  const write = setInterval(() => {
    for (const socket of all) socket.write('ping')
    if (moved < all.length) return
    clearInterval(write)
    process.send?.({ moved, most })
  }, 50)
}
if (role === 'server') countTurn()
