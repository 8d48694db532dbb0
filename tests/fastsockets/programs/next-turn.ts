/**
 * A client whose writes complete as in plain Node, or, with 'counted', in the next turn of the event loop. argv: 'server', or 'client', a port and
 * 'plain' or 'counted'. Runs each scenario on a connection of its own, and says what it and the server have seen.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { completeNextTurn, handleWritev, takeBack } from '../../../fastsockets/promotion/next-turn.ts'

interface Internals {
  _writeGeneric(this: Socket, writev: boolean, data: unknown, encoding: string, callback: unknown): unknown
}

const [role, port, mode] = process.argv.slice(2)
const log: string[] = []
const say = (text: string) => (): void => void log.push(text)
const KIB = Buffer.alloc(1024, 'k')

const scenarios: Record<string, (socket: Socket) => unknown> = {
  callbacks(socket) {
    for (let i = 0; i < 5; i++) socket.write(`${i}`, say(`written ${i}`))
    process.nextTick(say('tick'))
    setImmediate(() => socket.end('last', say('ended')))
  },
  'end in the same turn'(socket) {
    socket.write('a', say('written'))
    socket.end('b', say('ended'))
    log.push(`ended ${socket.writableEnded}`)
    socket.write('c', say('refused'))
  },
  'end of much'(socket) {
    for (let i = 0; i < 100; i++) socket.write(KIB)
    socket.destroySoon()
  },
  cork(socket) {
    socket.write('before')
    socket.cork()
    for (let i = 0; i < 5; i++) socket.write(`${i}`, say(`written ${i}`))
    socket.uncork()
    socket.cork()
    socket.write('after', say('after'))
    socket.end('end', say('ended'))
  },
  async 'corked without end'(socket) {
    for (let round = 0; round < 3; round++) {
      socket.write('single')
      socket.cork()
      socket.write(KIB)
      socket.write(KIB, say(`round ${round}`))
      socket.uncork()
    }
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    log.push(`unwritten ${socket.writableLength} ${socket.writableNeedDrain}`)
    socket.end()
  },
  'writes from callbacks'(socket) {
    let left = 50
    const next = (): void => {
      if (left-- > 0) socket.write(`${left} `, next)
      else socket.end(say('ended'))
    }
    next()
  },
  async drain(socket) {
    for (let i = 0; i < 300; i++) if (!socket.write(KIB)) await once(socket, 'drain')
    socket.end()
  },
  pipe: socket => Readable.from(Array.from({ length: 300 }, () => KIB)).pipe(socket),
  destroy(socket) {
    socket.write(KIB, say('written'))
    socket.destroy()
    socket.write('late', say('refused'))
  },
  'end, then destroy'(socket) {
    socket.end(KIB, say('ended'))
    socket.once('finish', () => socket.destroy())
  },
  async 'another connection of the same socket'(socket) {
    socket.write('first')
    socket.destroy()
    await once(socket, 'close')
    socket.connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write('second')
    log.push(`unwritten ${socket.writableLength > 0 && mode === 'plain'}`)
    socket.end()
  },
  'a thrower'(socket) {
    process.once('uncaughtException', error => log.push(`uncaught ${error.message}`))
    socket.once('finish', () => {
      throw new Error('from finish')
    })
    socket.end('a')
  },
}

/** Every write of this process completes as those of a connection that is about to move. */
function completeAllLater(): void {
  const prototype = net.Socket.prototype as unknown as Internals & { connect: (...args: never[]) => Socket }
  const { _writeGeneric, connect } = prototype
  prototype._writeGeneric = function (writev, data, encoding, callback): unknown {
    if (writev) handleWritev(this as never)
    const chunks = writev
      ? (data as { chunk: { length: number } }[])
      : [{ chunk: data as { length: number } }]
    let length = 0
    for (const { chunk } of chunks) length += chunk.length
    if (!this.connecting) completeNextTurn(this as never, length)
    return _writeGeneric.call(this, writev, data, encoding, callback)
  }
  prototype.connect = function (this: Socket, ...args: never[]): Socket {
    takeBack(this as never)
    return connect.apply(this, args)
  }
}

async function runAll(): Promise<void> {
  const seen: Record<string, string[]> = {}
  for (const [name, run] of Object.entries(scenarios))
    for (const highWaterMark of [undefined, 0]) {
      const socket = new net.Socket({ writableHighWaterMark: highWaterMark } as net.SocketConstructorOpts)
      for (const event of ['finish', 'close', 'end']) socket.on(event, say(event))
      socket.on('error', ({ code }: NodeJS.ErrnoException) => log.push(`error ${code}`))
      socket.resume().connect(Number(port), '127.0.0.1')
      await once(socket, 'connect')
      await run(socket)
      if (!socket.closed) await once(socket, 'close')
      await new Promise(resolve => setTimeout(resolve, 5))
      seen[`${name}, ${highWaterMark}`] = log.splice(0)
    }
  process.send?.(seen)
}

if (role === 'server') {
  const server = net.createServer(socket => {
    const hash = createHash('sha256')
    socket
      .on('data', bytes => void hash.update(bytes))
      .on('error', () => {})
      .on('close', () => {
        process.send?.({ bytes: socket.bytesRead, hash: hash.digest('hex') })
      })
  })
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
} else {
  if (mode === 'counted') completeAllLater()
  await runAll()
}
