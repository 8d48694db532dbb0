/** The server of `fastsockets perf` over `node:net`, relinked, as ordinary programs use it. */
import { once } from 'node:events'
import net from 'node:net'
import { relink } from '../../relink/preload.ts'
import type { HostPort } from '../host-port.ts'
import { decodeAsk, encodeHello, encodeTotal, PERF_MESSAGE_SIZE } from './perf-layout.ts'
import { ASK_TIMEOUT_MS, CALLERS_MAX, type PerfServer } from './perf-server.ts'
import { StopWatch } from './stop-watch.ts'

export async function openNetServer({ host, port }: HostPort): Promise<PerfServer> {
  relink()
  const server = net.createServer({ noDelay: true, allowHalfOpen: true }, serve)
  server.maxConnections = CALLERS_MAX
  server.listen(port, host)
  await once(server, 'listening')
  return { port: (server.address() as net.AddressInfo).port }
}

function serve(socket: net.Socket): void {
  // A client that leaves in mid-test is no failure of the server.
  socket.on('error', () => {})
  socket.write(encodeHello('net'))
  const timer = setTimeout(() => socket.destroy(), ASK_TIMEOUT_MS)
  socket.once('close', () => clearTimeout(timer))
  let answer: () => Buffer | undefined = () => undefined
  socket.once('end', () => {
    const bytes = answer()
    if (bytes === undefined) socket.end()
    else socket.end(bytes)
  })
  let received: Buffer = Buffer.alloc(0)
  socket.on('data', function handleData(bytes) {
    received = Buffer.concat([received, bytes])
    if (received.length < PERF_MESSAGE_SIZE) return
    socket.off('data', handleData)
    clearTimeout(timer)
    const ask = decodeAsk(received.subarray(0, PERF_MESSAGE_SIZE))
    if (ask === undefined) return void socket.destroy()
    const rest = received.subarray(PERF_MESSAGE_SIZE)
    if (ask.test === 'ping-pong') echo(socket, rest)
    else answer = sink(socket, rest)
  })
}

function echo(socket: net.Socket, first: Buffer): void {
  const send = (bytes: Buffer): void => {
    // A client that sends and does not read must not fill this process's memory.
    if (socket.write(bytes)) return
    socket.pause()
    socket.once('drain', () => socket.resume())
  }
  if (first.length > 0) send(first)
  socket.on('data', send)
}

/** Counts the bytes of a throughput test; the returned function makes the TOTAL. */
function sink(socket: net.Socket, first: Buffer): () => Buffer {
  const watch = new StopWatch()
  if (first.length > 0) watch.count(first.length)
  socket.on('data', bytes => watch.count(bytes.length))
  return () => encodeTotal(watch.total())
}
