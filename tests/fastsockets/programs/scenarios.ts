/**
 * Small dialogues between a client and a server in this process; each keeps a log of what the program sees. Run plain
 * and relinked, the logs must be equal. argv: index of the scenario, in the order of streams.test.ts.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import tls from 'node:tls'
import { transportOf } from '../../../fastsockets/transport.ts'

const log: string[] = []
let transport = 'none'

interface Pair {
  readonly server: net.Server
  readonly client: net.Socket
  /** The server's end of the connection. */
  readonly peer: net.Socket
}

async function listen(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

async function connect(options: net.ServerOpts = {}, clientOptions: object = {}): Promise<Pair> {
  const server = net.createServer(options)
  const port = await listen(server)
  const client = net.connect({ port, host: '127.0.0.1', ...clientOptions })
  const [[peer]] = await Promise.all([once(server, 'connection'), once(client, 'connect')])
  transport = transportOf(client).transport
  watch('client', client)
  watch('server', peer)
  return { server, client, peer }
}

function watch(name: string, socket: net.Socket): void {
  for (const event of ['end', 'finish', 'close', 'timeout', 'drain']) {
    socket.on(event, argument => log.push(`${name} ${event}${event === 'close' ? ` ${argument}` : ''}`))
  }
  socket.on('close', () => seenClosing.add(socket))
  socket.on('error', (error: NodeJS.ErrnoException) =>
    log.push(`${name} error ${error.message} ${error.code}`),
  )
}

function collect(socket: net.Socket): () => string {
  let text = ''
  socket.on('data', data => {
    text += data.toString('latin1')
  })
  return () => text
}

const bothClosed = ({ client, peer }: Pair): Promise<unknown> => Promise.all([closed(client), closed(peer)])
const seenClosing = new WeakSet<net.Socket>()
const closed = (socket: net.Socket): Promise<void> =>
  new Promise(resolve => (seenClosing.has(socket) ? resolve() : socket.once('close', () => resolve())))

/** Events of two independent sockets have no order between them: compare each one's own. */
function sortByName(): void {
  log.sort((a, b) => (a.split(' ')[0] as string).localeCompare(b.split(' ')[0] as string))
}

const SCENARIOS: (() => Promise<void>)[] = [
  async function encodings() {
    const pair = await connect()
    const { client, peer } = pair
    peer.on('data', data => peer.write(data))
    peer.on('end', () => peer.end())
    const text = collect(client)
    client.write('grüße', 'utf8')
    client.write('caf\u00e9', 'latin1')
    client.write('68656c6c6f', 'hex')
    client.write('aGVsbG8=', 'base64')
    client.write('hi', 'utf16le')
    client.write('', () => log.push('empty write done'))
    client.end('plain')
    await bothClosed(pair)
    sortByName()
    log.push(
      Buffer.from(text(), 'latin1').toString('hex'),
      `${client.bytesWritten} ${client.bytesRead} ${peer.bytesRead}`,
    )
  },

  async function halfClose() {
    const pair = await connect({ allowHalfOpen: true })
    const { client, peer } = pair
    const asked = collect(peer)
    const answered = collect(client)
    peer.on('end', () => setTimeout(() => peer.end(`you said ${asked()}`), 20))
    client.end('question')
    await bothClosed(pair)
    sortByName()
    log.push(answered())
  },

  async function endBeforeConnect() {
    const server = net.createServer()
    const port = await listen(server)
    const client = net.connect(port, '127.0.0.1')
    watch('client', client)
    client.end('early')
    const [peer] = await once(server, 'connection')
    transport = transportOf(client).transport
    const text = collect(peer)
    await bothClosed({ server, client, peer })
    log.push(text())
    server.close()
  },

  async function destroyInTheMiddle() {
    const pair = await connect()
    const { client, peer } = pair
    const text = collect(peer)
    client.write('before', () => client.destroy())
    await bothClosed(pair)
    sortByName()
    log.push(text(), String(client.destroyed), client.readyState)
  },

  async function reset() {
    const pair = await connect()
    pair.peer.resume()
    pair.client.resetAndDestroy()
    await bothClosed(pair)
    sortByName()
  },

  async function maxConnections() {
    const server = net.createServer()
    server.maxConnections = 1
    server.on('drop', data =>
      log.push(`drop ${data?.localAddress} ${data?.remoteFamily} ${typeof data?.remotePort}`),
    )
    const port = await listen(server)
    const first = net.connect(port, '127.0.0.1')
    await once(first, 'connect')
    const second = net.connect(port, '127.0.0.1')
    second.on('error', () => {})
    second.resume()
    await closed(second)
    transport = transportOf(first).transport
    first.destroy()
    server.close()
  },

  async function pauseAndResume() {
    const pair = await connect()
    const { client, peer, server } = pair
    let received = 0
    client.on('data', data => {
      received += data.length
      client.pause()
      setTimeout(() => client.resume(), 2)
    })
    peer.end(Buffer.alloc(3_000_000))
    peer.resume()
    await bothClosed(pair)
    sortByName()
    log.push(String(received))
    server.close()
  },

  async function characterCutInTwo() {
    const pair = await connect()
    const { client, peer, server } = pair
    client.setEncoding('utf8')
    let text = ''
    client.on('data', data => {
      text += data
    })
    const euro = Buffer.from('€')
    peer.write(euro.subarray(0, 1), () => setTimeout(() => peer.end(euro.subarray(1)), 20))
    peer.resume()
    await bothClosed(pair)
    sortByName()
    log.push(text)
    server.close()
  },

  async function onread() {
    const buffer = Buffer.alloc(10)
    let text = ''
    const pair = await connect(
      {},
      {
        onread: {
          buffer,
          callback: (count: number) => {
            text += buffer.toString('latin1', 0, count)
            return true
          },
        },
      },
    )
    const { client, peer, server } = pair
    peer.end('0123456789abcdefghij-the-end')
    peer.resume()
    await bothClosed(pair)
    sortByName()
    log.push(text, String(client.bytesRead))
    server.close()
  },

  async function pausedOnConnect() {
    const pair = await connect({ pauseOnConnect: true })
    const { client, peer, server } = pair
    client.end('waiting')
    await new Promise(resolve => setTimeout(resolve, 50))
    log.push(`paused ${peer.isPaused()} ${peer.bytesRead}`)
    const text = collect(peer)
    peer.resume()
    client.resume()
    await bothClosed(pair)
    sortByName()
    log.push(text())
    server.close()
  },

  async function timeout() {
    const pair = await connect()
    const { client, peer, server } = pair
    peer.resume()
    client.setTimeout(50, () => client.destroy())
    await bothClosed(pair)
    sortByName()
    server.close()
  },

  async function cork() {
    const pair = await connect()
    const { client, peer, server } = pair
    const text = collect(peer)
    client.cork()
    client.write('one ')
    client.write(Buffer.from('two '))
    client.write('three')
    log.push(`corked ${client.writableLength}`)
    client.uncork()
    client.end()
    client.resume()
    await bothClosed(pair)
    sortByName()
    log.push(text(), String(client.bytesWritten))
    server.close()
  },

  async function addresses() {
    const { client, peer, server } = await connect()
    const { port } = server.address() as net.AddressInfo
    log.push(
      `${client.remoteAddress} ${client.remotePort === port} ${client.remoteFamily} ${client.localAddress}`,
    )
    log.push(`${peer.remoteAddress} ${peer.localPort === port} ${peer.remoteFamily} ${peer.localAddress}`)
    log.push(`ports agree ${client.localPort === peer.remotePort} ${(client.localPort ?? 0) > 1023}`)
    log.push(JSON.stringify(Object.keys(client.address()).sort()))
    const other = net.connect(port, '127.0.0.1')
    await once(other, 'connect')
    log.push(`unique ${other.localPort !== client.localPort}`)
    other.destroy()
    client.destroy()
    await closed(client)
    log.push(`after: ${client.remoteAddress} ${client.readyState}`)
    server.close()
  },

  async function keepAliveHttp() {
    const server = http.createServer((request, response) => {
      let length = 0
      request.on('data', data => {
        length += data.length
      })
      request.on('end', () => response.end(`${request.method} ${request.url} ${length}`))
    })
    const port = await listen(server)
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = 0; i < 5; i++) {
      const request = http.request({ port, host: '127.0.0.1', agent, path: `/${i}`, method: 'POST' })
      request.end(Buffer.alloc(i * 50_000))
      const [response] = await once(request, 'response')
      let body = ''
      for await (const chunk of response) body += chunk
      transport = transportOf(request.socket as net.Socket).transport
      log.push(`${body} reused ${request.reusedSocket}`)
    }
    agent.destroy()
    server.close()
  },

  async function tlsOverSocket() {
    const key = readFileSync(new URL('../../../../tests/fixtures/key.pem', import.meta.url))
    const cert = readFileSync(new URL('../../../../tests/fixtures/cert.pem', import.meta.url))
    const pair = await connect()
    const { client, peer, server } = pair
    // As a database client does: some words in clear, then the same connection goes on encrypted.
    client.write('STARTTLS')
    await once(peer, 'data')
    const secureServer = new tls.TLSSocket(peer, { isServer: true, key, cert })
    secureServer.on('data', data => secureServer.write(`secret ${data}`))
    const secureClient = tls.connect({ socket: client, rejectUnauthorized: false })
    await once(secureClient, 'secureConnect')
    for (let i = 0; i < 3; i++) {
      secureClient.write(`message ${i}`)
      const [data] = await once(secureClient, 'data')
      log.push(String(data))
    }
    log.push(`${secureClient.getProtocol()} ${secureClient.remoteAddress}`)
    secureClient.end()
    await bothClosed(pair)
    sortByName()
    server.close()
  },

  async function overHttp2() {
    const server = http2.createServer((request, response) => response.end(`h2 ${request.url}`))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as net.AddressInfo
    const session = http2.connect(`http://127.0.0.1:${port}`)
    for (let i = 0; i < 3; i++) {
      const request = session.request({ ':path': `/${i}` })
      let body = ''
      for await (const chunk of request) body += chunk
      log.push(body)
    }
    transport = transportOf(session.socket as net.Socket).transport
    session.close()
    server.close()
  },

  async function exceptionInListener() {
    const pair = await connect()
    const { client, peer, server } = pair
    process.on('uncaughtException', error => log.push(`uncaught ${error.message}`))
    let count = 0
    peer.on('data', () => {
      throw new Error(`number ${++count}`)
    })
    for (let i = 0; i < 3; i++) {
      client.write('x')
      await new Promise(resolve => setTimeout(resolve, 30))
    }
    client.destroy()
    await bothClosed(pair)
    sortByName()
    server.close()
  },

  async function asynchronousContext() {
    const storage = new AsyncLocalStorage<string>()
    const server = storage.run('server', () => net.createServer())
    await storage.run('listen', () => listen(server))
    const { port } = server.address() as net.AddressInfo
    server.on('connection', peer => {
      log.push(`connection in ${storage.getStore()}`)
      peer.on('data', data => {
        log.push(`server data in ${storage.getStore()}`)
        storage.run('reply', () => peer.end(data))
      })
    })
    const client = storage.run('client', () => {
      const socket = net.connect(port, '127.0.0.1')
      socket.on('connect', () => log.push(`connect in ${storage.getStore()}`))
      socket.on('data', () => log.push(`client data in ${storage.getStore()}`))
      socket.on('close', () => log.push(`close in ${storage.getStore()}`))
      return socket
    })
    await once(client, 'connect')
    transport = transportOf(client).transport
    storage.run('write', () => client.write('x'))
    await closed(client)
    log.sort()
    server.close()
  },
]

await SCENARIOS[Number(process.argv[2])]?.()
process.send?.({ transport, log }, () => process.exit())
