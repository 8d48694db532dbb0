/**
 * TLS and http2 between two programs that start on TCP. argv: 'server', or 'client' and what the server said. The server says its
 * ports, and tells each client in its answers what carries the connection on its side. The client says a port of its own, and runs what it is
 * sent: { run, count, keeps }, with the connection of the same run before if that `keeps` it, and answers { isRight, seen }: what both sides said in turn.
 */
import { once } from 'node:events'
import http2 from 'node:http2'
import https from 'node:https'
import { createRequire } from 'node:module'
import net, { type AddressInfo, type Server, type Socket } from 'node:net'
import tls from 'node:tls'
import grpc from '@grpc/grpc-js'
import { certificate, trust } from '../../interop/certificate.ts'

export interface Seen {
  readonly isRight: boolean
  /** Client and server, as 'tcp shm'; each pair once. */
  readonly seen: string[]
}

const [role, said = '{}'] = process.argv.slice(2)
const HOST = '127.0.0.1'
const LARGE = Buffer.alloc(300_000, 'large')

type Done = (error: Error | null, answer?: Buffer) => void
const same = (bytes: Buffer): Buffer => bytes
const raw = {
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
}

const require = createRequire(import.meta.url)

/** In the first phase, which the question would end, all is over TCP. */
function wire(socket: Socket): string {
  if (!Object.keys(require.cache).some(file => /\/(runtime-[^/]*\.cjs|koffi\/)/.test(file))) return 'tcp'
  const { transportOf } =
    require('../../../fastsockets/index.cjs') as typeof import('../../../fastsockets/index.ts')
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
  const byLine = (socket: Socket): void => {
    let text = ''
    socket.setEncoding('latin1').on('data', more => {
      text += more
      const lines = text.split('\n')
      text = lines.pop() as string
      for (const line of lines) socket.write(`${wire(socket)} ${line}\n`)
    })
    socket.on('error', () => {})
  }
  const never = http2.createServer(answer)
  const servers: Record<string, Server> = {
    tls: tls.createServer(certificate(), byLine),
    // Those of a plain server, which it gives to native code.
    wrapped: net.createServer(socket =>
      byLine(new tls.TLSSocket(socket, { isServer: true, ...certificate() })),
    ),
    handed: net.createServer(socket => void never.emit('connection', socket)),
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
  const grpcServer = new grpc.Server()
  const echo = { path: '/Echo/echo', requestStream: false, responseStream: false, ...raw }
  grpcServer.addService(
    { echo },
    { echo: (call: { request: Buffer }, done: Done) => done(null, call.request) },
  )
  ports.grpc = await new Promise<number>(resolve =>
    grpcServer.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), (_, port) => resolve(port)),
  )
  process.send?.(ports)
}

const ports = JSON.parse(said) as Record<string, number>

/** A socket that JavaScript has until it is connected. */
async function connected(name: string): Promise<Socket> {
  const socket = net.connect(ports[name] as number, HOST)
  await once(socket, 'connect')
  return socket
}

async function secured(name: string): Promise<Socket> {
  const socket = tls.connect({ ...trust(), ALPNProtocols: ['h2'], socket: await connected(name) })
  await once(socket, 'secureConnect')
  return socket
}

async function lines(count: number, socket: Socket): Promise<Seen> {
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
  if (!isKept) {
    socket.end()
    await once(socket, 'close')
  }
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

function sessionOf(scheme: 'http' | 'https', name: string, given?: Socket): http2.ClientHttp2Session {
  return http2.connect(`${scheme}://${HOST}:${ports[name]}`, {
    ...trust(),
    ...(given && { createConnection: () => given }),
  })
}

async function streams(count: number, session: http2.ClientHttp2Session): Promise<Seen> {
  const seen = new Set<string>()
  let isRight = true
  for (let i = 0; i < count; i++) {
    const stream = session.request({ ':method': 'POST' })
    stream.end(bodyOf(i))
    const [headers] = await once(stream, 'response')
    isRight &&= Buffer.concat(await stream.toArray()).equals(bodyOf(i))
    seen.add(`${wire(below(session))} ${headers['x-wire']}`)
  }
  if (!isKept) {
    session.close()
    await once(session, 'close')
  }
  return { isRight, seen: [...seen] }
}

/** Nothing of its sockets is shown: both sides have them in their status. */
async function calls(count: number, client: grpc.Client): Promise<Seen> {
  let isRight = true
  for (let i = 0; i < count; i++) {
    const answer = await new Promise<Buffer | undefined>((resolve, reject) =>
      client.makeUnaryRequest('/Echo/echo', same, same, bodyOf(i), (error, got) =>
        error ? reject(error) : resolve(got),
      ),
    )
    isRight &&= answer?.equals(bodyOf(i)) === true
  }
  return { isRight, seen: [] }
}

let isKept = false
const kept = new Map<string, unknown>()

/** What `open` has made for that run before, if it was kept. */
async function held<T>(name: string, open: () => T | Promise<T>): Promise<T> {
  const known = (kept.get(name) as T | undefined) ?? (await open())
  if (isKept) kept.set(name, known)
  return known
}

const tlsSocket = (): Socket => tls.connect({ ...trust(), host: HOST, port: ports.tls as number })
const grpcClient = (): grpc.Client =>
  new grpc.Client(`${HOST}:${ports.grpc}`, grpc.credentials.createInsecure())
const runs: Record<string, (count: number) => Promise<Seen>> = {
  tls: async count => lines(count, await held('tls', tlsSocket)),
  https: requests,
  http2: count => streams(count, sessionOf('https', 'http2')),
  h2c: count => streams(count, sessionOf('http', 'h2c')),
  'tls over a connected socket': async count => lines(count, await held('tls over', () => secured('tls'))),
  'http2 over a connected socket': async count =>
    streams(count, await held('http2 over', async () => sessionOf('https', 'http2', await secured('http2')))),
  'h2c over a connected socket': async count =>
    streams(count, await held('h2c over', async () => sessionOf('http', 'h2c', await connected('h2c')))),
  'tls over an accepted socket': async count => lines(count, await held('tls at', () => secured('wrapped'))),
  'h2c over an accepted socket': async count =>
    streams(count, await held('h2c at', async () => sessionOf('http', 'handed', await connected('handed')))),
  grpc: async count => calls(count, await held('grpc', grpcClient)),
}

if (role === 'server') await serve()
else {
  process.on('message', message => {
    const { run, count, keeps = false } = message as { run: string; count: number; keeps?: boolean }
    isKept = keeps
    ;(runs[run] as (count: number) => Promise<Seen>)(count).then(
      result => process.send?.(result),
      error => process.send?.({ error: String(error?.stack) }),
    )
  })
  // Whoever calls its hashed port makes it load what its sockets need.
  const own = net.createServer().listen(0, HOST, () => process.send?.((own.address() as AddressInfo).port))
}
