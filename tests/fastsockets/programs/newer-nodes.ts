/**
 * What newer Nodes do with sockets, in this process. Run plain and relinked, the logs must be equal. argv: name of the
 * scenario
 */
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { closed, connect, credentials, listen, log, watch, wire } from './dialogue.ts'

type NewerSocket = net.Socket & {
  setTypeOfService(value: number): NewerSocket
  getTypeOfService(): number
}

const { BoundSocket } = net as unknown as { BoundSocket: new (options: object) => object }

const SCENARIOS: Readonly<Record<string, () => Promise<void>>> = {
  idleReset: () => resetIdle(false),
  idleTlsReset: () => resetIdle(true),

  async typeOfService() {
    for (const host of ['127.0.0.1', '::1', `\0newer-nodes-${process.pid}`]) {
      const server = net.createServer()
      const isPath = host.startsWith('\0')
      if (isPath) server.listen(host)
      else server.listen(0, host)
      await once(server, 'listening')
      const client = new net.Socket() as NewerSocket
      noteType('new', client)
      noteType('new', client, 0x13)
      if (isPath) client.connect(host)
      else client.connect((server.address() as net.AddressInfo).port, host)
      noteType('resolving', client)
      noteType('resolving', client, 0x2f)
      process.nextTick(() => {
        noteType('connecting', client)
        noteType('connecting', client, 0x40)
      })
      const [[peer]] = (await Promise.all([once(server, 'connection'), once(client, 'connect')])) as [
        [NewerSocket],
        unknown,
      ]
      if (!isPath) wire.transport = transportOf(client).transport
      noteType('connected', client)
      for (const value of [0, 3, 0x20, 0xff]) noteType('connected', client, value)
      noteType('accepted', peer)
      noteType('accepted', peer, 0x7e)
      client.destroy()
      await closed(client)
      noteType('destroyed', client)
      noteType('destroyed', client, 0x55)
      peer.destroy()
      server.close()
    }
  },

  async boundPath() {
    const path = `\0newer-nodes-${process.pid}`
    await reconnect({ path: `${path}-client` }, net.createServer().listen(path), { path })
  },

  async boundPort() {
    const server = net.createServer()
    const port = await listen(server)
    await reconnect({ host: '127.0.0.1' }, server, { port, host: '127.0.0.1' })
  },

  /** What listeners of sockets throw that were made within a domain. */
  async domain() {
    const { create } = await import('node:domain')
    await new Promise<void>(resolve => {
      const inside = create()
      inside.on('error', (error: Error) => {
        log.push(`domain ${error.message}`)
        if (error.message === 'of the server') resolve()
      })
      inside.run(() => {
        const server = net.createServer(peer => {
          peer.write('to the client')
          peer.on('data', () => {
            throw new Error('of the server')
          })
        })
        server.listen(0, '127.0.0.1', () => {
          const client = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
          client.on('data', () => {
            wire.transport = transportOf(client).transport
            setTimeout(() => client.write('to the server'), 20)
            throw new Error('of the client')
          })
        })
      })
    })
    finish()
  },

  /** The same of those that look after whatever is thrown. */
  async captured() {
    const { client, peer } = await connect()
    const { setUncaughtExceptionCaptureCallback: set, addUncaughtExceptionCaptureCallback: add } =
      process as NodeJS.Process & {
        addUncaughtExceptionCaptureCallback?(callback: (error: Error) => boolean): void
      }
    const isHeard = new Promise<void>(resolve => {
      const capture = (error: Error): boolean => {
        log.push(`captured ${error.message}`)
        resolve()
        return true
      }
      if (add === undefined) set.call(process, capture)
      else add.call(process, capture)
    })
    peer.on('data', () => {
      process.nextTick(() => log.push('tick'))
      throw new Error('of data')
    })
    client.write('some')
    await isHeard
    await sleep(20)
    client.write('more')
    await sleep(20)
    finish()
  },
}

/** A server resets a connection that its client keeps for the next request. */
async function resetIdle(isSecure: boolean): Promise<void> {
  const answer: http.RequestListener = (_request, response) => void response.end('answer')
  const server = isSecure ? https.createServer(credentials(), answer) : http.createServer(answer)
  const accepted: net.Socket[] = []
  server.on('connection', (peer: net.Socket) => accepted.push(peer.on('error', () => {})))
  server.on('clientError', () => {})
  const port = await listen(server)
  const agent = isSecure
    ? new https.Agent({ keepAlive: true, rejectUnauthorized: false })
    : new http.Agent({ keepAlive: true })
  const request = (isSecure ? https : http).get({ port, host: '127.0.0.1', agent })
  const isFree = once(agent, 'free')
  const [response] = await once(request, 'response')
  response.resume()
  const [socket] = (await isFree) as [net.Socket]
  wire.transport = transportOf(socket).transport
  for (const event of ['end', 'close']) socket.on(event, hadError => log.push(`${event} ${hadError}`))
  socket.on('error', (error: NodeJS.ErrnoException) => log.push(`error ${error.syscall} ${error.code}`))
  await sleep(20)
  accepted[0]?.resetAndDestroy()
  await closed(socket)
  await sleep(20)
  log.push(`kept ${Object.keys(agent.freeSockets).length}`)
  agent.destroy()
  server.close()
}

/** A socket over a bound one, and once more when that is gone. */
async function reconnect(bound: object, server: net.Server, to: net.NetConnectOpts): Promise<void> {
  server.on('connection', peer => peer.on('error', () => {}).end('hello'))
  const socket = new net.Socket({ handle: new BoundSocket(bound) } as net.SocketConstructorOpts)
  watch('client', socket)
  socket.on('data', data => log.push(String(data)))
  for (let turn = 1; turn <= 2; turn++) {
    const isOver = once(socket, 'close')
    log.push(`turn ${turn}`)
    socket.connect(to)
    socket.once('connect', () => log.push('connected'))
    await isOver
  }
  server.close()
}

function noteType(when: string, socket: NewerSocket, value?: number): void {
  const note = (what: string, action: () => unknown): void => {
    try {
      log.push(`${when} ${what} ${action()}`)
    } catch (error) {
      const { code, syscall, message } = error as NodeJS.ErrnoException
      log.push(`${when} ${what} ${code} ${syscall} ${message}`)
    }
  }
  if (value !== undefined) note(`set ${value}`, () => socket.setTypeOfService(value) === socket)
  note('get', () => socket.getTypeOfService())
}

function finish(): void {
  process.send?.({ transport: wire.transport, log }, () => process.exit())
}

await SCENARIOS[process.argv[2] as string]?.()
finish()
