/** Both halves of all contestants that are ordinary `node:net` programs. They differ in where they listen. */
import { once } from 'node:events'
import net from 'node:net'
import { noDelaySetting } from '../half-settings.ts'
import type { LatencyHistogram } from '../latency-histogram.ts'
import { type Client, HELD_SIZE, HELD_WINDOW, type Held, openMany, type Received } from './contestant.ts'

const BACKLOG = 1024
const ONE_BYTE = Buffer.alloc(1, 1)
/** One of this many consecutive connections is checked: checking each would distort the measurement. */
const CHECK_EVERY = 64

interface Addresses {
  readonly echo: net.NetConnectOpts
  readonly sink: net.NetConnectOpts
}

/**
 * Listens twice: for those whose bytes come back, and for those whose bytes are counted. `where` gives fresh
 * addresses.
 */
export async function serveSockets(where: (name: string) => net.ListenOptions): Promise<string> {
  const echo = await listen(where('echo'), socket => socket.on('data', data => socket.write(data)))
  const sink = await listen(where('sink'), count)
  return JSON.stringify({ echo, sink } satisfies Addresses)
}

async function listen(
  options: net.ListenOptions,
  serve: (socket: net.Socket) => void,
): Promise<net.NetConnectOpts> {
  const server = net.createServer({ noDelay: true }, socket => {
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen({ ...options, backlog: BACKLOG })
  await once(server, 'listening')
  const address = server.address() as net.AddressInfo | string
  return typeof address === 'string' ? { path: address } : { host: address.address, port: address.port }
}

function count(socket: net.Socket): void {
  let bytes = 0
  let startMs = 0
  socket.on('data', data => {
    if (bytes === 0) startMs = performance.now()
    bytes += data.length
  })
  socket.on('end', () => {
    const received: Received = { bytes, ms: performance.now() - startMs }
    socket.end(JSON.stringify(received))
  })
}

/** `check` throws if a connection is not on the wire that was meant. */
export async function dialSockets(
  address: string,
  check: (socket: net.Socket) => void = () => {},
): Promise<Client> {
  const { echo, sink } = JSON.parse(address) as Addresses
  const open = async (to: net.NetConnectOpts, noDelay: boolean): Promise<net.Socket> =>
    await connected(
      net.connect(
        'path' in to ? { path: to.path, noDelay } : { host: to.host as string, port: to.port, noDelay },
      ),
    )
  const openSpread = async (): Promise<net.Socket> =>
    await connected(net.connect({ ...echo, noDelay: true } as net.NetConnectOpts))
  const first = await open(echo, true)
  check(first)
  return {
    pingPong: (size, ms, latencies) => pingPong(first, size, ms, latencies),
    stream: async (size, ms) => {
      const socket = await open(sink, noDelaySetting())
      check(socket)
      return await stream(socket, size, ms)
    },
    connect: async (ms, latencies, options) => {
      const connect = options === 'spread' ? openSpread : () => open(echo, true)
      const endMs = performance.now() + ms
      let made = 0
      for (let startMs = performance.now(); startMs < endMs; startMs = performance.now()) {
        const socket = await connect()
        latencies.recordMs(performance.now() - startMs)
        if (made++ % CHECK_EVERY === 0) check(socket)
        await hearFrom(socket)
        socket.destroy()
        await once(socket, 'close')
      }
    },
    hold: async number => {
      const sockets = await openMany(number, async () => await hearFrom(await open(echo, true)))
      for (const socket of sockets) check(socket)
      return new HeldSockets(sockets)
    },
    close: async () => {
      first.destroy()
    },
  }
}

async function connected(socket: net.Socket): Promise<net.Socket> {
  await once(socket, 'connect')
  return socket
}

/** The kernel completes a connection before the server accepts it: an echo proves the accept. */
async function hearFrom(socket: net.Socket): Promise<net.Socket> {
  socket.write(ONE_BYTE)
  await once(socket, 'data')
  return socket
}

async function pingPong(
  socket: net.Socket,
  size: number,
  ms: number,
  latencies: LatencyHistogram,
): Promise<void> {
  const message = Buffer.alloc(size, 1)
  const endMs = performance.now() + ms
  let left = 0
  let sentMs = 0
  const send = (): void => {
    left = size
    sentMs = performance.now()
    socket.write(message)
  }
  await new Promise<void>((resolve, reject) => {
    const receive = (data: Buffer): void => {
      left -= data.length
      if (left > 0) return
      const nowMs = performance.now()
      latencies.recordMs(nowMs - sentMs)
      if (nowMs < endMs) return send()
      socket.off('data', receive).off('error', reject)
      resolve()
    }
    socket.on('data', receive).once('error', reject)
    send()
  })
}

async function stream(socket: net.Socket, size: number, ms: number): Promise<Received> {
  const chunk = Buffer.alloc(size, 1)
  const endMs = performance.now() + ms
  let answer = ''
  socket.setEncoding('latin1').on('data', text => {
    answer += text
  })
  const write = (): void => {
    do {
      if (!socket.write(chunk)) {
        socket.once('drain', resume)
        return
      }
    } while (performance.now() < endMs)
    socket.end()
  }
  const resume = (): void => {
    if (performance.now() < endMs) write()
    else socket.end()
  }
  write()
  await once(socket, 'close')
  return JSON.parse(answer) as Received
}

class HeldSockets implements Held {
  readonly #sockets: readonly net.Socket[]

  constructor(sockets: readonly net.Socket[]) {
    this.#sockets = sockets
  }

  async roundTrips(ms: number, latencies: LatencyHistogram): Promise<void> {
    const sockets = this.#sockets
    const message = Buffer.alloc(HELD_SIZE, 1)
    const endMs = performance.now() + ms
    const window = Math.min(HELD_WINDOW, sockets.length)
    let underWay = window
    await new Promise<void>((resolve, reject) => {
      // Each place in the window has sockets of its own: a socket never has two round trips under way.
      const start = (first: number, at: number): void => {
        const socket = sockets[at] as net.Socket
        const sentMs = performance.now()
        let left = HELD_SIZE
        const receive = (data: Buffer): void => {
          left -= data.length
          if (left > 0) return
          socket.off('data', receive)
          const nowMs = performance.now()
          latencies.recordMs(nowMs - sentMs)
          if (nowMs < endMs) return start(first, at + window < sockets.length ? at + window : first)
          if (--underWay === 0) resolve()
        }
        socket.on('data', receive)
        socket.write(message)
      }
      for (const socket of sockets) socket.once('error', reject)
      for (let first = 0; first < window; first++) start(first, first)
    })
    for (const socket of sockets) socket.removeAllListeners('error')
  }

  async close(): Promise<void> {
    const closed = this.#sockets.map(socket => once(socket, 'close'))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
  }
}
