/** What the dialogues of scenarios.ts are made of. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

/** What the program has seen. */
export const log: string[] = []
/** The wire of the connection that it is about. */
export const wire = { transport: 'none' }

export interface Pair {
  readonly server: net.Server
  readonly client: net.Socket
  /** The server's end of the connection. */
  readonly peer: net.Socket
}

export async function listen(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

export async function connect(options: net.ServerOpts = {}, clientOptions: object = {}): Promise<Pair> {
  const server = net.createServer(options)
  const port = await listen(server)
  const client = net.connect({ port, host: '127.0.0.1', ...clientOptions })
  const [[peer]] = await Promise.all([once(server, 'connection'), once(client, 'connect')])
  wire.transport = transportOf(client).transport
  watch('client', client)
  watch('server', peer)
  return { server, client, peer }
}

export function watch(name: string, socket: net.Socket): void {
  for (const event of ['end', 'finish', 'close', 'timeout', 'drain']) {
    socket.on(event, argument => log.push(`${name} ${event}${event === 'close' ? ` ${argument}` : ''}`))
  }
  socket.on('close', () => seenClosing.add(socket))
  socket.on('error', (error: NodeJS.ErrnoException) =>
    log.push(`${name} error ${error.message} ${error.code}`),
  )
}

export function collect(socket: net.Socket): () => string {
  let text = ''
  socket.on('data', data => {
    text += data.toString('latin1')
  })
  return () => text
}

export const bothClosed = ({ client, peer }: Pair): Promise<unknown> =>
  Promise.all([closed(client), closed(peer)])
const seenClosing = new WeakSet<net.Socket>()
export const closed = (socket: net.Socket): Promise<void> =>
  new Promise(resolve => (seenClosing.has(socket) ? resolve() : socket.once('close', () => resolve())))

/** Events of two independent sockets have no order between them: compare each one's own. */
export function sortByName(): void {
  log.sort((a, b) => (a.split(' ')[0] as string).localeCompare(b.split(' ')[0] as string))
}

/** It is another one in each run. */
export function hidePort(port: number): void {
  for (const [index, line] of log.entries()) log[index] = line.replaceAll(`:${port}`, ':PORT')
}

export function credentials(): { key: Buffer; cert: Buffer } {
  const read = (name: string): Buffer =>
    readFileSync(new URL(`../../../../tests/fixtures/${name}.pem`, import.meta.url))
  return { key: read('key'), cert: read('cert') }
}

/** A dialogue over a unix path, or an abstract name. */
export async function overPath(path: string): Promise<void> {
  const server = net.createServer({ allowHalfOpen: true }, peer => {
    watch('server', peer)
    log.push(`server ${JSON.stringify([peer.address(), peer.remoteAddress, peer.remotePort])}`)
    peer.on('data', data => peer.write(data))
    peer.on('end', () => peer.end('bye'))
  })
  server.maxConnections = 1
  server.on('drop', data => log.push(`server drop ${JSON.stringify(data)}`))
  server.listen(path)
  await once(server, 'listening')
  log.push(`server at ${JSON.stringify(server.address() === path)}`)
  const client = net.connect(path)
  watch('client', client)
  const text = collect(client)
  await once(client, 'connect')
  wire.transport = transportOf(client).transport
  log.push(`client ${JSON.stringify([client.address(), client.remoteAddress, client.remotePort])}`)
  const dropped = net.connect({ path })
  await closed(dropped.on('error', () => {}).resume())
  client.end('hello')
  await closed(client)
  log.push(`client ${text()}`)
  server.close()
  await once(server, 'close')
  const [error] = await once(net.connect(path), 'error')
  log.push(`late ${error.code} ${error.syscall} ${error.address === path}`)
  sortByName()
}
