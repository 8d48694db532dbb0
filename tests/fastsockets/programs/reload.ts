/**
 * A server that echoes, and a client with one connection that never rests, whose policy changes while they run. argv: 'server', or
 * 'client' and the server's port. Both answer { ask: 'wires' }, 'events' and 'stop'; the client also 'connect', and what came of it.
 */
import diagnostics from 'node:diagnostics_channel'
import net, { type AddressInfo, type Socket } from 'node:net'
import { type RequiredError, transportOf } from '../../../fastsockets/index.ts'

const [role, port = '0'] = process.argv.slice(2)
const PAUSE_MS = 2

export interface Outcome {
  readonly transport?: string
  readonly failed?: string
  readonly message?: string
  readonly reason?: string | undefined
}

export interface SeenPolicy {
  readonly file: string
  readonly version: string | undefined
  readonly ruleCount: number
  readonly error: string | undefined
}

const sockets = new Set<Socket>()
const policies: SeenPolicy[] = []
const refused: unknown[] = []
diagnostics.subscribe('fastsockets:policy', message => {
  const { error, ...rest } = message as SeenPolicy & { error?: Error }
  policies.push({ ...rest, error: (error as { code?: string } | undefined)?.code })
})
diagnostics.subscribe('fastsockets:refused', message => void refused.push(message))

function note(socket: Socket): void {
  sockets.add(socket)
  socket.on('error', () => {})
  socket.on('close', () => sockets.delete(socket))
}

/** Counts, and checks that every answer is what was asked. */
let round = 0
function ping(socket: Socket): void {
  const text = `${round++}.`
  socket.write(text)
  socket.once('data', answer => {
    if (String(answer) !== text) throw new Error(`asked ${text}, and heard ${answer}`)
    setTimeout(ping, PAUSE_MS, socket)
  })
}

function connect(): Promise<Outcome> {
  return new Promise(resolve => {
    const socket = net.connect(Number(port), '127.0.0.1', () => socket.write('one'))
    socket.once('data', () => {
      resolve({ transport: transportOf(socket).transport })
      socket.destroy()
    })
    socket.once('error', (error: NodeJS.ErrnoException & Partial<RequiredError>) => {
      const { code = '', message, reason } = error
      resolve({ failed: code, message, reason: reason?.code })
    })
  })
}

process.on('message', async ({ ask }: { ask: string }) => {
  if (ask === 'wires') process.send?.([...sockets].map(socket => transportOf(socket).transport))
  else if (ask === 'events') process.send?.({ policies, refused, round })
  else if (ask === 'connect') process.send?.(await connect())
})

if (role === 'server') {
  const server = net.createServer(socket => {
    note(socket)
    socket.pipe(socket)
  })
  server.listen(Number(port), '127.0.0.1', () => {
    process.send?.({ port: (server.address() as AddressInfo).port })
  })
} else {
  const socket = net.connect(Number(port), '127.0.0.1', () => {
    note(socket)
    ping(socket)
    process.send?.({})
  })
}
