/**
 * A server of message sockets. It prints where it listens, and the wire of each connection.
 *
 *   argv: behaviour [hex: the bytes of `lie`, of one connection after the other]
 */
import {
  CompletionQueue,
  END,
  listen,
  MESSAGE_MAX,
  type MessageSocket,
} from '../../../fastsockets/raw/index.ts'

const [behaviour = 'echo', ...lies] = process.argv.slice(2)

async function echo(socket: MessageSocket): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(MESSAGE_MAX)
  for (;;) {
    const length = await socket.recv(buffer)
    if (length === END) break
    await socket.send(buffer.subarray(0, length))
  }
  socket.close()
}

const behaviours: Record<string, (socket: MessageSocket) => Promise<void> | void> = {
  echo,

  /** Never lets the event loop run. */
  'echo-polling'(socket) {
    const buffer = Buffer.allocUnsafeSlow(MESSAGE_MAX)
    for (;;) {
      const length = socket.tryRecv(buffer)
      if (length === END) break
      if (length !== undefined) while (!socket.trySend(buffer.subarray(0, length)));
    }
    socket.close()
  },

  /** Sends before it receives, as its peer does: the deadlock of EMP 2002, section 5.2. */
  async 'send-first'(socket) {
    await socket.send(Buffer.from('short'))
    await socket.send(Buffer.alloc(MESSAGE_MAX, 'theirs'))
    await echo(socket)
  },

  /** The same for a program that polls. */
  'send-first-polling'(socket) {
    while (!socket.trySend(Buffer.from('short')));
    while (!socket.trySend(Buffer.alloc(MESSAGE_MAX, 'theirs')));
    behaviours['echo-polling']?.(socket)
  },

  /** Sends numbered messages of many lengths. */
  async count(socket) {
    for (let i = 0; i < 200; i++) {
      const message = Buffer.alloc(4 + ((i * 7919) % 70_000), i)
      message.writeInt32LE(i)
      await socket.send(message)
    }
    socket.close()
  },

  /** Receives only when it is told to. */
  hold(socket) {
    process.on('message', () => void echo(socket))
  },

  /** Receives one message, and closes with others unreceived. */
  async rude(socket) {
    await socket.recv(Buffer.alloc(1))
    // Otherwise all that the peer has sent may come after the close, which is then an end.
    while (socket.nextLength() === undefined) await new Promise(setImmediate)
    socket.close()
  },

  /** Serves through a completion queue. */
  async queue(socket) {
    const queue = new CompletionQueue()
    queue.add(socket)
    const buffer = Buffer.allocUnsafeSlow(MESSAGE_MAX)
    for (;;) {
      await queue.wait()
      const length = socket.tryRecv(buffer)
      if (length === END) break
      if (length !== undefined) await socket.send(buffer.subarray(0, length))
    }
    socket.close()
  },
}

async function serveMessages(): Promise<void> {
  const server = await listen({ host: '127.0.0.1', type: 'datagram' })
  process.send?.({ port: server.address.port })
  for await (const socket of server) {
    process.send?.({ accepted: socket.transport.transport })
    void Promise.resolve(behaviours[behaviour]?.(socket)).catch(error =>
      process.send?.({ error: (error as NodeJS.ErrnoException).code }),
    )
  }
}

/** A peer that is no message socket, or a bad one: sends bytes, and ends, or says nothing more. */
async function lie(isEnding: boolean): Promise<void> {
  const server = await listen({ host: '127.0.0.1' })
  process.send?.({ port: server.address.port })
  for await (const socket of server) {
    process.send?.({ accepted: socket.transport.transport })
    await socket.send(Buffer.from(lies.shift() ?? '', 'hex'))
    if (isEnding) socket.shutdown()
  }
}

process.on('disconnect', () => process.exit())
if (behaviour.startsWith('lie')) await lie(behaviour === 'lie-and-end')
else await serveMessages()
