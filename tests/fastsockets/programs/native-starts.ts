/**
 * TLS and http2 between two programs that start on TCP. argv: 'server', or 'client' and what the server said. The server says its
 * ports, { tls, https, http2, h2c }, and tells each client in its answers what carries the connection on its side. The client runs what it is
 * sent: { run, count }, and answers { isRight, seen }: what both sides said in turn.
 */
import { once } from 'node:events'
import http2 from 'node:http2'
import https from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import tls from 'node:tls'
import { transportOf } from '../../../fastsockets/index.ts'
import { certificate, trust } from '../../interop/certificate.ts'

export interface Seen {
  readonly isRight: boolean
  /** Client and server, as 'tcp shm'; each pair once. */
  readonly seen: string[]
}

const [role, said = '{}'] = process.argv.slice(2)
const HOST = '127.0.0.1'
const LARGE = Buffer.alloc(300_000, 'large')

function wire(socket: Socket): string {
  return transportOf(socket).transport
}

function bodyOf(i: number): Buffer {
  return i % 20 === 7 ? LARGE : Buffer.from(`message ${i}`)
}

/** The raw socket below a session of http2, which shows only a proxy. */
function below(session: http2.Http2Session): Socket {
  const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'socket')
  return (session as unknown as Record<symbol, Socket>)[symbol as symbol] as Socket
}

async function serve(): Promise<void> {
  const answer = (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse): void => {
    response.setHeader('x-wire', wire(below(request.stream.session as http2.Http2Session)))
    request.pipe(response)
  }
  const servers: Record<string, Server> = {
    // A line for a line.
    tls: tls.createServer(certificate(), socket => {
      let text = ''
      socket.setEncoding('latin1').on('data', more => {
        text += more
        const lines = text.split('\n')
        text = lines.pop() as string
        for (const line of lines) socket.write(`${wire(socket)} ${line}\n`)
      })
      socket.on('error', () => {})
    }),
    https: https.createServer(certificate(), (request, response) => {
      response.setHeader('x-wire', wire(request.socket))
      request.pipe(response)
    }),
    http2: http2.createSecureServer(certificate(), answer),
    h2c: http2.createServer(answer),
  }
  const ports: Record<string, number> = {}
  for (const [name, server] of Object.entries(servers)) {
    server.listen(0, HOST)
    await once(server, 'listening')
    ports[name] = (server.address() as AddressInfo).port
  }
  process.send?.(ports)
}

const ports = JSON.parse(said) as Record<string, number>

async function lines(count: number): Promise<Seen> {
  const socket = tls.connect({ ...trust(), host: HOST, port: ports.tls as number })
  socket.setEncoding('latin1')
  const seen = new Set<string>()
  let isRight = true
  for (let i = 0; i < count; i++) {
    const line = bodyOf(i).toString('latin1')
    socket.write(`${line}\n`)
    let got = ''
    while (!got.endsWith('\n')) got += String((await once(socket, 'data'))[0])
    const at = got.indexOf(' ')
    isRight &&= got.slice(at + 1, -1) === line
    seen.add(`${wire(socket)} ${got.slice(0, at)}`)
  }
  socket.end()
  await once(socket, 'close')
  return { isRight, seen: [...seen] }
}

async function requests(count: number): Promise<Seen> {
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ...trust() })
  const seen = new Set<string>()
  let isRight = true
  for (let i = 0; i < count; i++) {
    const request = https.request({ agent, host: HOST, port: ports.https, method: 'POST' })
    request.end(bodyOf(i))
    const [response] = await once(request, 'response')
    isRight &&= Buffer.concat(await response.toArray()).equals(bodyOf(i))
    seen.add(`${wire(request.socket as Socket)} ${response.headers['x-wire']}`)
  }
  agent.destroy()
  return { isRight, seen: [...seen] }
}

async function streams(name: 'http2' | 'h2c', count: number): Promise<Seen> {
  const session = http2.connect(`${name === 'h2c' ? 'http' : 'https'}://${HOST}:${ports[name]}`, trust())
  const seen = new Set<string>()
  let isRight = true
  for (let i = 0; i < count; i++) {
    const stream = session.request({ ':method': 'POST' })
    stream.end(bodyOf(i))
    const [headers] = await once(stream, 'response')
    isRight &&= Buffer.concat(await stream.toArray()).equals(bodyOf(i))
    seen.add(`${wire(below(session))} ${headers['x-wire']}`)
  }
  session.close()
  await once(session, 'close')
  return { isRight, seen: [...seen] }
}

const runs: Record<string, (count: number) => Promise<Seen>> = {
  tls: lines,
  https: requests,
  http2: count => streams('http2', count),
  h2c: count => streams('h2c', count),
}

if (role === 'server') await serve()
else {
  process.on('message', message => {
    const { run, count } = message as { run: string; count: number }
    runs[run]?.(count).then(
      result => process.send?.(result),
      error => process.send?.({ error: String(error?.stack) }),
    )
  })
  process.send?.('ready')
}
