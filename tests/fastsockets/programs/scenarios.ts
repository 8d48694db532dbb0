/**
 * Small dialogues between a client and a server in this process; each keeps a log of what the program sees. Run plain
 * and relinked, the logs must be equal. argv: name of the scenario, or `names` to
 * list them all.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tls from 'node:tls'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import {
  bothClosed,
  closed,
  collect,
  connect,
  credentials,
  listen,
  log,
  overPath,
  sortByName,
  watch,
  wire,
} from './dialogue.ts'
import { closedBeforeItAccepts, closedByAnImmediate, connectBeforeListen } from './early-calls.ts'
import { TICKS } from './ticks.ts'

const SCENARIOS = new Map(
  [
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

    connectBeforeListen,
    closedBeforeItAccepts,
    closedByAnImmediate,

    async function endBeforeConnect() {
      const server = net.createServer()
      const port = await listen(server)
      const client = net.connect(port, '127.0.0.1')
      watch('client', client)
      client.end('early')
      const [peer] = await once(server, 'connection')
      wire.transport = transportOf(client).transport
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
      wire.transport = transportOf(first).transport
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
        wire.transport = transportOf(request.socket as net.Socket).transport
        log.push(`${body} reused ${request.reusedSocket}`)
      }
      agent.destroy()
      server.close()
    },

    async function tlsOverSocket() {
      const pair = await connect()
      const { client, peer, server } = pair
      // As a database client does: some words in clear, then the same connection goes on encrypted.
      client.write('STARTTLS')
      await once(peer, 'data')
      const secureServer = new tls.TLSSocket(peer, { isServer: true, ...credentials() })
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
      wire.transport = transportOf(session.socket as net.Socket).transport
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
        while (count === i) await new Promise(resolve => setTimeout(resolve, 5))
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
      wire.transport = transportOf(client).transport
      storage.run('write', () => client.write('x'))
      await closed(client)
      log.sort()
      server.close()
    },

    async function tlsConnect() {
      let peerClosed: Promise<unknown> | undefined
      const server = tls.createServer(credentials(), peer => {
        watch('server', peer)
        peerClosed = closed(peer)
        peer.on('data', data => peer.write(`secret ${data}`))
      })
      const port = await listen(server)
      const options = { port, host: '127.0.0.1', rejectUnauthorized: false, servername: 'a.example' }
      const client = tls.connect(options, () => log.push(`client secure ${client.getProtocol()}`))
      watch('client', client)
      client.on('session', () => log.push('client session'))
      for (let i = 0; i < 3; i++) {
        client.write(`message ${i}`)
        log.push(`client ${(await once(client, 'data'))[0]}`)
      }
      wire.transport = transportOf(client).transport
      client.end()
      await closed(client)
      await peerClosed
      sortByName()
      server.close()
    },

    async function overHttps() {
      const server = https.createServer(credentials(), (request, response) => request.pipe(response))
      const port = await listen(server)
      const options = { port, host: '127.0.0.1', method: 'POST', rejectUnauthorized: false }
      const request = https.request(options)
      request.end(Buffer.alloc(300_000, 'x'))
      const [response] = await once(request, 'response')
      wire.transport = transportOf(response.socket).transport
      let size = 0
      for await (const chunk of response) size += chunk.length
      log.push(`${response.statusCode} ${size}`)
      server.close()
    },

    async function unixPath() {
      const folder = mkdtempSync(join(tmpdir(), 'scenario-'))
      const path = join(folder, 'socket')
      await overPath(path)
      log.push(`left behind: ${existsSync(path)}`)
      rmSync(folder, { recursive: true })
    },

    async function abstractName() {
      await overPath(`\0scenario-${process.pid}`)
    },

    async function answerInVain() {
      const { client, peer } = await connect({ allowHalfOpen: true })
      client.write('question', () => client.destroy())
      await once(peer.resume(), 'end')
      for (const word of ['a', 'b']) log.push(`wrote: ${await new Promise(done => peer.write(word, done))}`)
    },

    /** A proxy hears that its client has given up before it hears the answer that came after that. */
    async function endBeforeAnswer() {
      let impatient: http.ClientRequest | undefined
      const origin = http.createServer((_, response) => {
        setImmediate(() => {
          impatient?.destroy()
          response.end('too late')
        })
      })
      const [originPort, proxy] = [await listen(origin), http.createServer()]
      const done = new Promise<void>(resolve => {
        proxy.on('request', (request, response) => {
          request.socket.on('end', () => log.push('end'))
          for (const event of ['finish', 'close']) response.on(event, () => log.push(event))
          http.get({ port: originPort, host: '127.0.0.1' }, answer => {
            wire.transport = transportOf(answer.socket).transport
            log.push('answer')
            answer.pipe(response)
          })
          response.on('close', resolve)
        })
      })
      impatient = http.get({ port: await listen(proxy), host: '127.0.0.1' }).on('error', () => {})
      await done
    },

    async function closedInOneTurn() {
      const server = net.createServer(peer => peer.on('error', () => {}).resume())
      const port = await listen(server)
      const sockets = Array.from({ length: 3 }, () => net.connect({ port, host: '127.0.0.1' }))
      await Promise.all(sockets.map(socket => once(socket, 'connect')))
      for (const [i, socket] of sockets.entries()) {
        socket.on('close', () => {
          log.push(`${i} close`)
          process.nextTick(() => log.push(`${i} tick`))
          queueMicrotask(() => log.push(`${i} microtask`))
        })
      }
      wire.transport = transportOf(sockets[0] as net.Socket).transport
      const done = sockets.map(closed)
      for (const socket of sockets) socket.destroy()
      await Promise.all(done)
      await new Promise(setImmediate)
    },

    ...TICKS,
  ].map(scenario => [scenario.name, scenario]),
)

const name = process.argv[2] as string
if (name === 'names') log.push(...SCENARIOS.keys())
else await SCENARIOS.get(name)?.()
process.send?.({ transport: wire.transport, log }, () => process.exit())
