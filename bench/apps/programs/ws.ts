/** ws: small messages there and back, and a stream of larger ones from the server. */
import { once } from 'node:events'
import http from 'node:http'
import { WebSocket, WebSocketServer } from 'ws'
import { HOST, Meter, measureRoundTrips, play, portOf } from './program.ts'

const SMALL = Buffer.alloc(64, 'x')
const LARGE = Buffer.alloc(64 * 1024, 'y')
/** Messages of the stream that are under way. */
const MESSAGES_AHEAD = 16

async function serve(): Promise<number> {
  const server = http.createServer()
  new WebSocketServer({ server }).on('connection', (socket, { url }) => {
    socket.on('error', () => {})
    if (url === '/stream') stream(socket)
    else socket.on('message', (data, binary) => socket.send(data, { binary }))
  })
  return await portOf(server)
}

function stream(socket: WebSocket): void {
  const more = (error?: Error | null): void => {
    if (!error && socket.readyState === WebSocket.OPEN) socket.send(LARGE, more)
  }
  for (let i = 0; i < MESSAGES_AHEAD; i++) more()
}

async function open(port: number, path: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://${HOST}:${port}${path}`)
  await once(socket, 'open')
  return socket
}

play({
  serve,
  async call(port, ms) {
    const echo = await open(port, '/echo')
    const roundTrips = await measureRoundTrips('echo 64 B', ms, () => {
      echo.send(SMALL)
      return once(echo, 'message')
    })
    echo.terminate()

    const meter = new Meter(ms)
    const socket = await open(port, '/stream')
    await new Promise<void>(resolve =>
      socket.on('message', (data: Buffer) => {
        if (meter.count(data.length)) resolve()
      }),
    )
    socket.terminate()
    return [roundTrips, { part: 'stream 64 KiB', metric: 'rate', unit: 'B/s', value: meter.perSecond }]
  },
})
