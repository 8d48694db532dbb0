/**
 * A server that pauses all its sockets, then resumes them at once, and reports how many got data in one turn of the
 * event loop.
 */
import { once } from 'node:events'
import net from 'node:net'

/** Of each listener; more than a turn has time for if all come at once. */
const WORK_MS = 1

const sockets: net.Socket[] = []
let inTurn = 0
let most = 0
let heard = 0

const server = net.createServer({ pauseOnConnect: true }, socket => {
  socket.on('error', () => {})
  socket.pause()
  sockets.push(socket)
  process.send?.({ accepted: sockets.length })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.({ port: (server.address() as net.AddressInfo).port })

function endTurn(): void {
  inTurn = 0
  if (heard < sockets.length) setImmediate(endTurn)
  else process.send?.({ most })
}

process.on('message', () => {
  for (const socket of sockets) {
    socket.once('data', () => {
      heard++
      most = Math.max(most, ++inTurn)
      const endMs = performance.now() + WORK_MS
      while (performance.now() < endMs);
    })
    socket.resume()
  }
  setImmediate(endTurn)
})
process.on('disconnect', () => process.exit())
