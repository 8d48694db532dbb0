/**
 * Two programs whose connection starts on TCP and moves; one of them breaks the rules of promotion. argv: 'server' or 'client', the port
 * of the server, and how this side lies, '' for the honest one. Both write numbered bytes all the time, and check those that come. The
 * server says { port }, the honest side { isRight, received, end } once its connection has closed.
 */
import net, { type AddressInfo, type Socket } from 'node:net'
import { type ConnectedTcp, shutdownBelow } from '../../../fastsockets/handle/tcp-below.ts'
import { PromotedHandle } from '../../../fastsockets/promotion/promoted-handle.ts'

const [role, port = '', lie = ''] = process.argv.slice(2)

export interface Told {
  readonly isRight: boolean
  readonly received: number
  readonly end: string
}

type Handle = {
  tcp: ConnectedTcp
  outgoing: string
  stream: { write(chunks: readonly Buffer[]): void }
}

const COUNTS: Record<string, (given: number) => bigint> = {
  'too large': given => BigInt(given + 1000),
  'too small': () => 0n,
  negative: () => -2n,
  'all ones': () => -1n,
}

/** In place of the method that sends the count, and moves the outgoing direction. */
function moveOut(this: Handle): void {
  const count = COUNTS[lie]?.(this.tcp.bytesWritten)
  const bytes = Buffer.alloc(8)
  if (count !== undefined) {
    bytes.writeBigInt64LE(count)
    this.stream.write([bytes])
  }
  if (lie === 'twice') {
    bytes.writeBigInt64LE(BigInt(this.tcp.bytesWritten))
    this.stream.write([bytes])
    this.stream.write([bytes])
  }
  if (lie === 'an end without a count') shutdownBelow(this.tcp, () => {})
  this.outgoing = 'stream'
}

function byteAt(i: number): number {
  return (i * 31 + 7) % 251
}

function exchange(socket: Socket): void {
  let [sent, received, isRight, end] = [0, 0, true, '']
  const timer = setInterval(() => {
    const bytes = Buffer.from(Array.from({ length: 64 }, (_, i) => byteAt(sent + i)))
    sent += bytes.length
    socket.write(bytes)
  }, 1)
  socket.on('data', bytes => {
    for (const byte of bytes) isRight &&= byte === byteAt(received++)
  })
  socket.on('end', () => {
    end += 'end '
  })
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    end += `${code} `
  })
  socket.on('close', () => {
    clearInterval(timer)
    if (lie === '') process.send?.({ isRight, received, end: end.trim() })
  })
}

if (lie !== '') Object.assign(PromotedHandle.prototype, { moveOut })
process.on('disconnect', () => process.exit())
if (role === 'client') {
  const socket = net.connect({ port: Number(port), host: '127.0.0.1', noDelay: true }, () => exchange(socket))
  process.on('message', () => socket.destroy())
} else {
  let last: Socket | undefined
  const server = net.createServer({ noDelay: true }, socket => {
    last = socket
    exchange(socket)
  })
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
  process.on('message', () => last?.destroy())
}
