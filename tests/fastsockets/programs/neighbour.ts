/** An ordinary program in a container, driven by questions over IPC: it listens, connects, and says what it sees. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import net, { type Server, type Socket } from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import {
  type RawServer,
  type RawSocket,
  connect as rawConnect,
  listen as rawListen,
} from '../../../fastsockets/raw/index.ts'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'

export interface Wire {
  readonly transport: string
  readonly reason?: { readonly code: string; readonly text: string } | undefined
}

export interface Called extends Wire {
  readonly local: string | undefined
  readonly remote: string | undefined
  /** The server's answer: what it sees. */
  readonly there: Accepted
  readonly echoed: number
}

export interface Accepted extends Wire {
  readonly local: string | undefined
  readonly remote: string | undefined
  readonly remotePort: number | undefined
}

export type Question =
  | { readonly ask: 'listen'; readonly host?: string; readonly port?: number; readonly path?: string }
  | { readonly ask: 'raw-listen' | 'raw-call'; readonly host: string; readonly port: number }
  | { readonly ask: 'relisten'; readonly host: string; readonly port: number }
  | {
      readonly ask: 'meet' | 'connects'
      readonly host: string
      readonly port: number
      readonly count: number
    }
  | { readonly ask: 'call'; readonly host?: string; readonly port?: number; readonly path?: string }
  | { readonly ask: 'move'; readonly host: string; readonly port: number; readonly roundTrips: number }
  | { readonly ask: 'hold'; readonly host: string; readonly port: number }
  | { readonly ask: 'descriptors' | 'sockets' }
  | { readonly ask: 'become'; readonly uid: number }
  | { readonly ask: 'leave' }

const PAYLOAD = Buffer.alloc(200_000, 'fast sockets ')
let server: Server | undefined

process.on('message', (question: Question) => {
  answer(question).then(
    message => process.send?.(message),
    error => process.send?.({ error: { code: error.code, message: error.message } }),
  )
})
process.on('disconnect', () => process.exit())

async function answer(question: Question): Promise<object> {
  switch (question.ask) {
    case 'listen': {
      server = net.createServer(serve).listen(placeOf(question))
      await once(server, 'listening')
      const address = server.address()
      return { port: typeof address === 'object' ? address?.port : 0 }
    }
    case 'raw-listen': {
      const raw = await rawListen({ host: question.host, port: question.port })
      void rawServe(raw)
      return {}
    }
    case 'raw-call':
      return await rawCall(await rawConnect({ host: question.host, port: question.port }))
    case 'relisten':
      server?.close()
      server = net.createServer(socket => socket.on('error', () => {}).end()).listen(placeOf(question))
      await once(server, 'listening')
      return {}
    case 'connects':
      return await connects(question)
    case 'meet':
      return await meet(question)
    case 'call':
      return await call(net.connect(placeOf(question)))
    case 'move':
      return await move(net.connect(placeOf(question)), question.roundTrips)
    case 'hold':
      return await hold(net.connect(placeOf(question)))
    case 'descriptors':
      return {
        count: readdirSync('/proc/self/fd').length,
        mappings: readFileSync('/proc/self/maps', 'utf8').split('memfd:').length,
      }
    case 'sockets':
      return readStatusOf(process.pid).flatMap(({ sockets }) => sockets)
    case 'become':
      process.setgid?.(question.uid)
      process.setuid?.(question.uid)
      return {}
    case 'leave':
      setImmediate(() => process.exit())
      return {}
  }
}

function placeOf({ path, host, port }: { path?: string; host?: string; port?: number }): net.NetConnectOpts {
  return path === undefined ? { port: port ?? 0, ...(host && { host }) } : { path }
}

/** Sends one line of what it sees, then all bytes back. */
function serve(socket: Socket): void {
  const { transport, reason } = transportOf(socket)
  const { localAddress: local, remoteAddress: remote, remotePort } = socket
  socket.write(`${JSON.stringify({ transport, reason, local, remote, remotePort })}\n`)
  socket.on('error', error => process.send?.({ failed: (error as NodeJS.ErrnoException).code }))
  socket.on('close', () => process.send?.({ closed: true }))
  socket.pipe(socket)
}

/** Sends back to one client what it sends. */
async function rawServe(server: RawServer): Promise<void> {
  const socket = await server.accept()
  const buffer = Buffer.alloc(PAYLOAD.length)
  for (let length = 1; length > 0; ) {
    length = await socket.recv(buffer)
    if (length > 0) await socket.send(buffer.subarray(0, length))
  }
  socket.close()
}

async function rawCall(socket: RawSocket): Promise<object> {
  const { transport } = socket.transport
  const buffer = Buffer.alloc(PAYLOAD.length)
  await socket.send(PAYLOAD)
  let received = 0
  while (received < PAYLOAD.length) received += await socket.recv(buffer.subarray(received))
  socket.close()
  return { transport, echoed: buffer.equals(PAYLOAD) ? received : -1 }
}

async function call(socket: Socket): Promise<Called> {
  await once(socket, 'connect')
  const { transport, reason } = transportOf(socket)
  const { localAddress: local, remoteAddress: remote } = socket
  socket.end(PAYLOAD)
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk as Buffer)
  const all = Buffer.concat(chunks)
  const at = all.indexOf('\n')
  const there = JSON.parse(all.toString('utf8', 0, at)) as Accepted
  const echo = all.subarray(at + 1)
  return {
    transport,
    ...(reason && { reason }),
    local,
    remote,
    there,
    echoed: echo.equals(PAYLOAD) ? echo.length : -1,
  }
}

/** By which wires that many connections came. */
async function connects(question: {
  host: string
  port: number
  count: number
}): Promise<Record<string, number>> {
  const wires: Record<string, number> = {}
  const note = (wire: string): void => {
    wires[wire] = (wires[wire] ?? 0) + 1
  }
  const open = Array.from({ length: question.count }, async () => {
    const socket = net.connect(placeOf(question))
    socket.on('error', error => note((error as NodeJS.ErrnoException).code ?? error.message))
    socket.on('connect', () => {
      const { transport, reason } = transportOf(socket)
      note(reason === undefined ? transport : `${reason.code}: ${reason.text}`)
    })
    socket.resume()
    await new Promise(resolve => socket.on('close', resolve))
  })
  await Promise.all(open)
  return wires
}

/** What each server says to whom so many connections came, one after another. */
async function meet(question: { host: string; port: number; count: number }): Promise<object> {
  const met: Record<string, number> = {}
  for (let i = 0; i < question.count; i++) {
    const said = (await net.connect(placeOf(question)).setEncoding('utf8').toArray()).join('')
    met[said] = (met[said] ?? 0) + 1
  }
  return met
}

/** Makes round trips until the connection has moved to the fast way, at most so many. */
async function move(socket: Socket, roundTrips: number): Promise<object> {
  await once(socket, 'connect')
  const first = transportOf(socket).transport
  await once(socket, 'data')
  let count = 0
  for (; count < roundTrips && transportOf(socket).transport === first; count++) {
    socket.write(Buffer.alloc(64, count))
    for (let length = 0; length < 64; ) {
      const [bytes] = (await once(socket, 'data')) as [Buffer]
      if (bytes.some(byte => byte !== count % 256)) throw new Error(`round trip ${count} has other bytes`)
      length += bytes.length
    }
  }
  return { first, last: transportOf(socket).transport }
}

/** Says later how the connection has ended. */
async function hold(socket: Socket): Promise<Wire> {
  let failure: string | undefined
  socket.on('error', error => {
    failure = (error as NodeJS.ErrnoException).code
  })
  socket.on('close', () => process.send?.({ ended: failure ?? 'end' }))
  await once(socket, 'data')
  return transportOf(socket)
}
