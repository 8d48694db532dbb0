/**
 * A server over raw sockets. It prints where it listens, and the wire of each connection.
 *
 *   argv: behaviour [backlog]
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { listen, type RawSocket } from '../../../fastsockets/raw/index.ts'

const [behaviour = 'echo', backlog = '16'] = process.argv.slice(2)
const BUFFER_SIZE = 64 * 1024
/** More than the kernel takes at once. */
const LAST_WORDS_SIZE = 20_000_000

const behaviours: Record<string, (socket: RawSocket) => Promise<void> | void> = {
  async echo(socket) {
    const buffer = Buffer.alloc(BUFFER_SIZE)
    for (;;) {
      const length = await socket.recv(buffer)
      if (length === 0) break
      await socket.send(buffer.subarray(0, length))
    }
    socket.close()
  },

  /** Never lets the event loop run. */
  'echo-polling'(socket) {
    const buffer = Buffer.alloc(BUFFER_SIZE)
    for (;;) {
      const length = socket.tryRecv(buffer)
      if (length === 0) break
      for (let at = 0; at < (length ?? 0); ) at += socket.trySend(buffer.subarray(at, length))
    }
    socket.close()
  },

  /** Answers once the client has ended, with the number of bytes that came. */
  async count(socket) {
    const buffer = Buffer.alloc(BUFFER_SIZE)
    let total = 0
    for (let length = 1; length > 0; total += length) length = await socket.recv(buffer)
    await socket.send(Buffer.from(String(total)))
    socket.close()
  },

  /** Reads on request. */
  hold(socket) {
    process.on('message', () => void behaviours.count?.(socket))
  },

  /** Closes with bytes unread. */
  async rude(socket) {
    await socket.recv(Buffer.alloc(1))
    socket.close()
  },

  /** Resets, with nothing unread. */
  async reset(socket) {
    await socket.recv(Buffer.alloc(1))
    socket.reset()
  },

  /** Answers by `trySend` alone, out of a buffer that it uses anew at once. */
  async 'echo-trying'(socket) {
    const buffer = Buffer.alloc(BUFFER_SIZE)
    for (;;) {
      const length = await socket.recv(buffer)
      if (length === 0) break
      for (let at = 0; at < length; ) {
        at += socket.trySend(buffer.subarray(at, length))
        if (at < length) await nextTurn()
      }
      buffer.fill(0)
    }
    socket.close()
  },

  /** Closes when it has said how much of its last words has gone out. */
  'last-words'(socket) {
    const words = Buffer.alloc(LAST_WORDS_SIZE, 'last words')
    process.send?.({ sent: socket.trySend(words) })
    socket.close()
  },

  async greet(socket) {
    await socket.send(Buffer.from('hello'))
    socket.close()
  },
}

const server = await listen({ host: '127.0.0.1', backlog: Number(backlog) })
process.send?.({ port: server.address.port })
process.on('disconnect', () => process.exit())

if (behaviour !== 'never-accept') {
  for await (const socket of server) {
    process.send?.({ accepted: socket.transport.transport })
    void Promise.resolve(behaviours[behaviour]?.(socket)).catch(error =>
      process.send?.({ error: (error as NodeJS.ErrnoException).code }),
    )
  }
}
