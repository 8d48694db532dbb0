/**
 * An echo over `node:dgram`. The server prints its port; the client prints the median round trip in microseconds.
 *
 *   argv: serve HOST | ask HOST PORT ms
 */
import dgram from 'node:dgram'
import { once } from 'node:events'
import { SMALL } from '../sizes.ts'

const [role, host = '', port, ms] = process.argv.slice(2)
const socket = dgram.createSocket('udp4')

if (role === 'serve') {
  socket.on('message', (message, from) => socket.send(message, from.port, from.address))
  socket.bind(0, host)
  await once(socket, 'listening')
  process.stdout.write(`${JSON.stringify({ port: socket.address().port })}\n`)
  process.stdin.resume().on('end', () => socket.close())
} else {
  const message = Buffer.alloc(SMALL, 1)
  const times: number[] = []
  const endMs = performance.now() + Number(ms)
  while (performance.now() < endMs) {
    const startMs = performance.now()
    socket.send(message, Number(port), host)
    await once(socket, 'message')
    times.push(1000 * (performance.now() - startMs))
  }
  times.sort((a, b) => a - b)
  process.stdout.write(`${JSON.stringify({ p50Us: times[times.length >> 1] })}\n`)
  socket.close()
}
