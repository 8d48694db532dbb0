/** ws: messages of all sizes, fragments, compression, pings, close codes, refused upgrades, broken connections. */
import { once } from 'node:events'
import http from 'node:http'
import { WebSocket, WebSocketServer } from 'ws'
import { HOST } from '../../support/placement.ts'
import { bytesOf, digest, heard, type Journal, largeBytes } from '../journal.ts'
import { closed, deadPort, type Place, placeOf, play, type Service } from '../scenario.ts'

const EVENTS = ['open', 'upgrade', 'message', 'ping', 'pong', 'unexpected-response', 'error', 'close']

function describe(event: string, ...args: unknown[]): string {
  if (event === 'message') return `${args[1] ? 'binary' : 'text'} ${digest(args[0] as Buffer)}`
  if (event === 'close') return args.map(String).join(' ')
  if (event === 'unexpected-response') return String((args[1] as http.IncomingMessage).statusCode)
  return event.startsWith('p') ? String(args[0]) : ''
}

async function serve(journal: Journal): Promise<Service> {
  const server = http.createServer()
  const sockets = new WebSocketServer({
    server,
    perMessageDeflate: true,
    maxPayload: 2 * largeBytes().length,
    verifyClient: ({ req }: { req: http.IncomingMessage }) => req.url !== '/forbidden',
  })
  const ends: Promise<unknown>[] = []
  sockets.on('connection', (socket, request) => {
    const name = `server ${request.url}`
    journal.watch(name, socket, EVENTS, describe)
    ends.push(heard(socket, 'close'))
    if (request.url === '/terminate') setTimeout(() => socket.terminate(), 20)
    else if (request.url === '/close') socket.close(4000, 'go away')
    else socket.on('message', (data, binary) => socket.send(data, { binary }))
  })
  const place = await placeOf(server)
  return {
    place: { ...place, dead: await deadPort() },
    close: async () => {
      sockets.close()
      await Promise.all([closed(server), ...ends])
    },
  }
}

async function call({ port, dead }: Place, journal: Journal): Promise<void> {
  const open = (path: string, more: object = {}, at = port): WebSocket => {
    const socket = new WebSocket(`ws://${HOST}:${at}${path}`, { perMessageDeflate: false, ...more })
    journal.watch(path, socket, EVENTS, describe)
    return socket
  }
  const echo = async (socket: WebSocket, message: string | Buffer): Promise<void> => {
    const answer = once(socket, 'message')
    socket.send(message)
    await answer
  }

  for (const [path, more] of [
    ['/plain', {}],
    ['/deflate', { perMessageDeflate: { threshold: 100 } }],
  ] as const) {
    const socket = open(path, more)
    await once(socket, 'open')
    journal.note(path, 'extensions', socket.extensions)
    await echo(socket, 'text €')
    await echo(socket, bytesOf(200, 'small'))
    await echo(socket, 'again '.repeat(100_000))
    await echo(socket, path === '/plain' ? largeBytes() : bytesOf(1_000_000, 'deflated'))
    const whole = once(socket, 'message')
    for (const [i, part] of ['one ', 'two ', 'three'].entries()) socket.send(part, { fin: i === 2 })
    await whole
    const pong = once(socket, 'pong')
    socket.ping('are you there')
    await pong
    // Ordered, although neither side waits in between.
    let left = 2000
    const all = new Promise<void>(resolve => socket.on('message', () => --left === 0 && resolve()))
    for (let i = 0; i < 2000; i++) socket.send(`message ${i}`)
    await all
    socket.close(1000, 'done')
    await heard(socket, 'close')
  }
  for (const path of ['/terminate', '/close', '/forbidden', '/refused']) {
    const socket = open(path, {}, path === '/refused' ? dead : port)
    if (path === '/forbidden') socket.once('unexpected-response', () => socket.terminate())
    await heard(socket, 'close')
  }
  await Promise.all(
    Array.from({ length: 30 }, async (_, i) => {
      const socket = open(`/many/${i}`)
      await once(socket, 'open')
      await echo(socket, bytesOf(i * 5000, `${i}`))
      socket.close(3000 + i)
      await heard(socket, 'close')
    }),
  )
}

play({ serve, call })
