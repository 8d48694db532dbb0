/**
 * Requests and responses. argv: road, server | client port. The road is how both of them read: `raw` (posted receives),
 * `onread` (a buffer of the program's) or `data` (a flowing listener). Each says how many bytes it has received, and how
 * many of them found no receive posted.
 */
import net from 'node:net'
import { type Transport, transportOf } from '../../../fastsockets/handle/transport.ts'
import { connect, listen } from '../../../fastsockets/raw/index.ts'
import { patternAt } from '../../support/pattern.ts'

const SIZES = [1, 64, 1500, 20_000, 200_000] as const
const ROUNDS = 100
const REQUESTS = Array.from({ length: ROUNDS }, () => SIZES).flat()
/** A program that knows how much it will get posts as much. */
const BUFFER_SIZE = 256 * 1024

const [road = 'data', role = 'server', port = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

function report({ transport, bytesIn, counts }: Transport): void {
  process.send?.({ transport, bytesIn, bytesBuffered: counts?.bytesBuffered })
}

/** Answers each request with as many bytes. */
function serve(socket: net.Socket): void {
  socket.on('data', data => socket.write(data))
  socket.on('end', () => report(transportOf(socket)))
}

/** Calls `handle` with each piece that comes, by the road that was asked for. */
function dial(handle: (length: number) => void): net.Socket {
  const place = { port: Number(port), host: '127.0.0.1' }
  if (road !== 'onread') return net.connect(place).on('data', data => handle(data.length))
  const callback = (length: number): boolean => {
    handle(length)
    return true
  }
  return net.connect({ ...place, onread: { buffer: Buffer.alloc(BUFFER_SIZE), callback } })
}

async function serveRaw(): Promise<void> {
  const server = await listen({ host: '127.0.0.1' })
  process.send?.({ port: server.address.port })
  const socket = await server.accept()
  const buffer = Buffer.alloc(BUFFER_SIZE)
  for (let length = await socket.recv(buffer); length > 0; length = await socket.recv(buffer))
    await socket.send(buffer.subarray(0, length))
  report(socket.transport)
}

async function callRaw(): Promise<void> {
  const socket = await connect({ port: Number(port), host: '127.0.0.1' })
  const buffer = Buffer.alloc(BUFFER_SIZE)
  for (const size of REQUESTS) {
    const sent = socket.send(patternAt(0, size))
    for (let left = size; left > 0; ) left -= await socket.recv(buffer)
    await sent
  }
  report(socket.transport)
  socket.shutdown()
}

function call(): void {
  let index = 0
  let left = REQUESTS[0] as number
  const socket = dial(length => {
    left -= length
    if (left > 0) return
    index++
    left = REQUESTS[index] ?? 0
    if (left > 0) return void socket.write(patternAt(0, left))
    report(transportOf(socket))
    socket.end()
  })
  socket.write(patternAt(0, left))
}

if (road === 'raw') await (role === 'server' ? serveRaw() : callRaw())
else if (role === 'client') call()
else {
  const server = net.createServer(serve)
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as net.AddressInfo).port }))
}
