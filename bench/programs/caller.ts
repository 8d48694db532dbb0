/**
 * The client of every measurement: an ordinary `node:net` program that prints one result and ends.
 *
 *   argv: echo port size count | stream port size bytes | connect port count
 */
import { once } from 'node:events'
import net from 'node:net'
import { createHistogram } from 'node:perf_hooks'
import { transportOf } from '../../fastsockets/transport.ts'

const [what, port, ...sizes] = process.argv.slice(2)
const [first = 0, second = 0] = sizes.map(Number)
const WARM_UP_SHARE = 0.2

if (what === 'echo') await echo(first, second)
else if (what === 'stream') await stream(first, second)
else await connectOften(first)

async function open(): Promise<net.Socket> {
  const socket = net.connect({ port: Number(port), host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  return socket
}

async function echo(size: number, count: number): Promise<void> {
  const socket = await open()
  const message = Buffer.alloc(size, 1)
  const histogram = createHistogram()
  const warmUp = count * WARM_UP_SHARE
  let left = size
  let rounds = 0
  let sentAt = 0n
  const send = (): void => {
    left = size
    sentAt = process.hrtime.bigint()
    socket.write(message)
  }
  await new Promise<void>(resolve => {
    socket.on('data', data => {
      left -= data.length
      if (left > 0) return
      if (rounds > warmUp) histogram.record(process.hrtime.bigint() - sentAt)
      if (++rounds === count) resolve()
      else send()
    })
    send()
  })
  const { transport } = transportOf(socket)
  socket.destroy()
  print({ transport, p50Us: histogram.percentile(50) / 1000, p99Us: histogram.percentile(99) / 1000 })
}

async function stream(size: number, bytes: number): Promise<void> {
  const socket = await open()
  const chunk = Buffer.alloc(size, 1)
  let sent = 0
  const write = (): void => {
    while (sent < bytes) {
      sent += size
      if (!socket.write(chunk)) {
        socket.once('drain', write)
        return
      }
    }
    socket.end()
  }
  write()
  const { transport } = transportOf(socket)
  await once(socket.resume(), 'close')
  print({ transport })
}

/** The second and later connections: the first may have to find out how to reach the server. */
async function connectOften(count: number): Promise<void> {
  const histogram = createHistogram()
  let transport = ''
  for (let i = 0; i <= count; i++) {
    const startAt = process.hrtime.bigint()
    const socket = await open()
    if (i > count * WARM_UP_SHARE) histogram.record(process.hrtime.bigint() - startAt)
    transport = transportOf(socket).transport
    socket.destroy()
    await once(socket, 'close')
  }
  print({ transport, p50Us: histogram.percentile(50) / 1000, p99Us: histogram.percentile(99) / 1000 })
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
