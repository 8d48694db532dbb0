/**
 * A server that reads everything, and reports how much CPU time the longest turn of its event loop took.
 *
 * From one immediate to the next is one turn, with all that libuv and the runtime do in it.
 */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { threadCpuMs } from '../../support/thread-clock.ts'

let received = 0
let connections = 0
let isMeasuring = false
let begunMs = 0
let longestMs = 0

const server = net.createServer(socket => {
  connections++
  socket.on('data', data => {
    received += data.length
  })
  socket.on('error', () => {})
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.send?.({ port: (server.address() as net.AddressInfo).port })

function endTurn(): void {
  const nowMs = threadCpuMs()
  longestMs = Math.max(longestMs, nowMs - begunMs)
  begunMs = nowMs
  if (isMeasuring) setImmediate(endTurn)
}

process.on('message', async ({ ms }: { ms: number }) => {
  received = connections = longestMs = 0
  isMeasuring = true
  begunMs = threadCpuMs()
  setImmediate(endTurn)
  await sleep(ms)
  isMeasuring = false
  process.send?.({ longestMs, received, connections })
})
process.on('disconnect', () => process.exit())
