/**
 * An ordinary TCP server whose commands come over IPC. It knows nothing of Fast Sockets, except that it reports the
 * wire of each connection.
 *
 *   argv: behaviour [host] [port]
 */
import { createHash } from 'node:crypto'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const [behaviour = 'echo', host = '127.0.0.1', port = '0'] = process.argv.slice(2)

const behaviours: Record<string, (socket: net.Socket) => void> = {
  echo: socket => socket.pipe(socket),
  /** Never reads. */
  hold: socket => socket.pause(),
  /** Counts and hashes, and says so when the client has ended. */
  sink: socket => {
    const hash = createHash('sha256')
    let bytes = 0
    socket.on('data', data => {
      bytes += data.length
      hash.update(data)
    })
    socket.on('end', () => socket.end(JSON.stringify({ bytes, sha256: hash.digest('hex') })))
  },
  /** Writes as fast as it may, for ever, and lets others have their turns; each byte is its position modulo 251. */
  flood: socket => {
    let position = 0
    const write = (): void => {
      const chunk = Buffer.alloc(50_000)
      for (let i = 0; i < chunk.length; i++) chunk[i] = (position + i) % 251
      position += chunk.length
      process.send?.({ written: position })
      // A peer that keeps up is never waited for: others have their turns all the same.
      if (socket.write(chunk)) setImmediate(write)
      else socket.once('drain', () => setImmediate(write))
    }
    write()
  },
  /** Writes a little, a hundred times a second. */
  trickle: socket => {
    const timer = setInterval(() => socket.write(Buffer.alloc(1000)), 10)
    socket.on('close', () => clearInterval(timer))
  },
  /** Writes a line and leaves the process at once. */
  'write-and-exit': socket => {
    socket.write('last words')
    process.exit(0)
  },
  hangup: socket => socket.destroy(),
  /** Answers before it has read anything, and is killed. */
  'answer-and-die': socket => answerAndDie(socket, 1),
  /** More than TCP has room for if the peer does not read. */
  'answer-much-and-die': socket => answerAndDie(socket, 4),
}

function answerAndDie(socket: net.Socket, count: number): void {
  socket.pause()
  for (let left = count - 1; left > 0; left--) socket.write(Buffer.alloc(25_000))
  socket.write(Buffer.alloc(25_000), () => process.kill(process.pid, 'SIGKILL'))
}

const server = net.createServer({ allowHalfOpen: behaviour === 'sink' }, socket => {
  socket.on('error', error => process.send?.({ error: (error as NodeJS.ErrnoException).code }))
  socket.on('close', () => process.send?.({ closed: true }))
  process.send?.({
    accepted: transportOf(socket).transport,
    remotePort: socket.remotePort,
    localPort: socket.localPort,
  })
  behaviours[behaviour]?.(socket)
})
server.listen(Number(port), host, () => {
  process.send?.({ port: (server.address() as net.AddressInfo).port })
})
process.on('disconnect', () => process.exit())
