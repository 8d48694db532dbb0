/**
 * How connections end, step by step, in this process. Run plain and relinked, the logs must be equal. argv: name of the
 * scenario
 */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { closed, connect, credentials, listen, log, wire } from './dialogue.ts'

/** More than any buffer takes. */
const LARGE = Buffer.alloc(20_000_000)

const SCENARIOS: Readonly<Record<string, () => Promise<void>>> = {
  /** Up to the immediates; what comes after them is a matter of the event loop's phase. */
  async finish() {
    const { client, server, peer } = await connect()
    peer.resume()
    for (const event of ['prefinish', 'finish']) client.on(event, () => log.push(event))
    client.write('some', () => log.push('first write'))
    client.end('more', () => log.push('end'))
    log.push(`returned ${client.writableFinished}`)
    process.nextTick(() => log.push('tick'))
    await Promise.resolve()
    log.push('microtask')
    await Promise.resolve()
    log.push('another')
    await closed(client)
    server.close()
    forgetWatched()
  },

  /** The end alone: there is nothing to write, and it may be out at once. */
  async bareEnd() {
    const { client, server, peer } = await connect()
    peer.resume()
    for (const event of ['prefinish', 'finish']) client.on(event, () => log.push(event))
    client.end()
    log.push('returned')
    await Promise.resolve()
    log.push('microtask')
    await closed(client)
    server.close()
    forgetWatched()
  },

  /** A reset has arrived, and the program writes before it has heard of it. */
  async writeAfterReset() {
    const server = net.createServer()
    const client = new net.Socket()
    // Nothing is read: what is unread makes the close a reset.
    client.pause()
    client.on('error', () => {})
    const [[peer]] = (await Promise.all([
      once(server, 'connection'),
      once(client.connect(await listen(server), '127.0.0.1'), 'connect'),
    ])) as [[net.Socket], unknown]
    wire.transport = transportOf(client).transport
    await new Promise(resolve => peer.write('unread', resolve))
    await sleep(20)
    peer.on('data', data => {
      log.push(String(data))
      peer.write('answer', error => log.push(`write ${(error as NodeJS.ErrnoException | undefined)?.code}`))
    })
    peer.on('error', (error: NodeJS.ErrnoException) => log.push(`${error.syscall} ${error.code}`))
    client.write('last words')
    client.destroy()
    await closed(peer)
    server.close()
  },

  async pausedReset() {
    const { client, peer, server } = await connect({ pauseOnConnect: true })
    peer.on('data', data => log.push(`server data ${data}`))
    client.write('last words', () => setTimeout(() => client.resetAndDestroy(), 20))
    await closed(client)
    await sleep(50)
    log.push(`server still ${peer.readyState}`)
    peer.resume()
    await closed(peer)
    server.close()
    keepServers()
  },

  pausedWriter: () => resetWriter(false),

  /** The same, with bytes that are never read. */
  unreadWriter: () => resetWriter(true),

  /** What a piece lies in, of two sockets that take turns; and what is left of the others if one is transferred. */
  async ownMemory() {
    const pairs = [await connect(), await connect()]
    for (const [i, { peer, client }] of pairs.entries()) {
      peer.on('data', data => {
        log.push(`server ${i} ${data} ${data.byteOffset} ${data.buffer.byteLength}`)
        if (i === 0) structuredClone(data.buffer, { transfer: [data.buffer as ArrayBuffer] })
        peer.write('.')
      })
      client.resume()
    }
    for (const text of ['aaaa', 'bbbb', 'c'.repeat(1000)]) {
      for (const { client } of pairs) client.write(text)
      await Promise.all(pairs.map(({ client }) => once(client, 'data')))
    }
    for (const { client, peer, server } of pairs) {
      peer.end()
      client.end()
      await closed(client)
      server.close()
    }
    log.splice(0, log.length, ...log.filter(line => /server \d/.test(line)).sort())
  },

  async smallerBuffers() {
    let size = 1000
    const server = net.createServer()
    const counts: number[] = []
    const client = new net.Socket({
      onread: {
        buffer: () => {
          const buffer = Buffer.alloc(size)
          size = 10
          return buffer
        },
        callback: (count: number) => {
          counts.push(count)
          setTimeout(() => client.resume(), 5)
          return counts.length < 2
        },
      },
    } as net.SocketConstructorOpts)
    const [[peer]] = (await Promise.all([
      once(server, 'connection'),
      once(client.connect(await listen(server), '127.0.0.1'), 'connect'),
    ])) as [[net.Socket], unknown]
    wire.transport = transportOf(client).transport
    peer.write('first')
    await sleep(100)
    peer.write('x'.repeat(100))
    for (let turn = 0; turn < 3; turn++) {
      await new Promise(setImmediate)
      log.push(`${counts.length <= turn + 2}`)
    }
    await sleep(300)
    log.push(counts.join())
    client.destroy()
    server.close()
  },

  /** Whether a write or a read hears of it first is a matter of moments, and differs from time to time. */
  async tlsWriter() {
    for (let round = 0; round < 5; round++) {
      const server = tls.createServer(credentials())
      const port = await listen(server)
      const client = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
      client.on('error', () => {})
      const [peer] = (await once(server, 'secureConnection')) as [tls.TLSSocket]
      wire.transport = transportOf(client).transport
      let errors = 0
      let writes = 0
      peer.on('error', () => errors++)
      peer.write(LARGE, () => writes++)
      client.once('data', () => client.destroy())
      await closed(peer)
      log.push(`${errors} error, ${writes} write`)
      await sleep(20)
      log.push(`later: ${errors} error, ${writes} write`)
      server.close()
    }
  },

  async unreadOnTheWay() {
    const { client, peer, server } = await connect()
    peer.resume()
    peer.write('unread')
    client.destroy()
    await closed(peer)
    server.close()
    keepServers()
  },

  async tlsReset() {
    const { server, client, peer } = await connect()
    peer.removeAllListeners()
    client.removeAllListeners()
    const secureServer = new tls.TLSSocket(peer, { isServer: true, ...credentials() })
    const secureClient = tls.connect({ socket: client, rejectUnauthorized: false })
    secureServer.write('hello')
    for (const [name, socket] of Object.entries({ peer, secureServer })) {
      for (const event of ['end', 'close'])
        socket.on(event, hadError => log.push(`${name} ${event} ${hadError}`))
      socket.on('error', (error: NodeJS.ErrnoException) => log.push(`${name} ${error.syscall} ${error.code}`))
    }
    secureServer.resume()
    await once(secureClient, 'data')
    await sleep(20)
    client.resetAndDestroy()
    await closed(secureServer)
    log.push(`destroyed ${secureServer.destroyed} ${peer.destroyed}`)
    await sleep(20)
    server.close()
  },

  async resetOnPath() {
    const path = `\0endings-${process.pid}`
    const reset = (name: string, socket: net.Socket): void => {
      try {
        socket.resetAndDestroy()
      } catch (error) {
        log.push(`${name} ${(error as NodeJS.ErrnoException).code}`)
      }
    }
    const server = net.createServer(peer => {
      peer.once('data', data => {
        reset('accepted', peer)
        peer.end(`heard ${data}`)
      })
    })
    server.listen(path)
    await once(server, 'listening')
    const client = net.connect(path)
    reset('connecting', client)
    await once(client, 'connect')
    wire.transport = transportOf(client).transport
    reset('connected', client)
    client.write('words')
    log.push(String((await once(client, 'data'))[0]))
    client.resume()
    await closed(client)
    server.close()
  },

  async throwingCloses() {
    process.on('uncaughtException', error => log.push(`uncaught ${error.message}`))
    const server = net.createServer(peer => peer.on('error', () => {}).resume())
    const port = await listen(server)
    const sockets = Array.from({ length: 5 }, () => net.connect(port, '127.0.0.1'))
    await Promise.all(sockets.map(socket => once(socket, 'connect')))
    wire.transport = transportOf(sockets[0] as net.Socket).transport
    for (const [i, socket] of sockets.entries()) {
      socket.on('close', () => {
        log.push(`${i} close`)
        process.nextTick(() => log.push(`${i} tick`))
        queueMicrotask(() => log.push(`${i} microtask`))
        // The first and the last of the turn among them.
        if (i !== 2) throw new Error(`of ${i}`)
      })
    }
    // From the same phase of the event loop.
    await sleep(1)
    for (const socket of sockets) socket.destroy()
    for (let turn = 1; turn <= 3; turn++) {
      await new Promise(setImmediate)
      log.push(`turn ${turn}`)
    }
    server.close()
  },

  async failedWrites() {
    const writes: Readonly<Record<string, (client: net.Socket) => void>> = {
      bytes: client => client.write(Buffer.from('more')),
      string: client => client.write('more'),
      'utf-8': client => client.write('m'.repeat(5461)),
      'longer utf-8': client => client.write('m'.repeat(5462)),
      latin1: client => client.write('m'.repeat(16_384), 'latin1'),
      'longer latin1': client => client.write('m'.repeat(16_385), 'latin1'),
      hex: client => client.write('abcd', 'hex'),
      several: client => {
        client.cork()
        client.write('more')
        client.write('and more')
        client.uncork()
      },
    }
    for (const [name, write] of Object.entries(writes)) {
      const server = net.createServer(peer => peer.destroy())
      const client = net.connect({ port: await listen(server), host: '127.0.0.1', allowHalfOpen: true })
      client.on('error', (error: NodeJS.ErrnoException) => log.push(`${error.syscall} ${error.code}`))
      await once(client.resume(), 'end')
      wire.transport = transportOf(client).transport
      client.write('some')
      // Plain, the answer to that must have come.
      await sleep(50)
      write(client)
      await closed(client)
      log.push(`${name} ${client.bytesWritten}`)
      server.close()
    }
  },

  async timeoutAfterWrite() {
    const { client, peer, server } = await connect()
    client.resume()
    await new Promise(resolve => peer.write(LARGE, resolve))
    peer.setTimeout(200)
    const later = sleep(300).then(() => log.push('server later'))
    await once(peer, 'timeout')
    await later
    peer.destroy()
    await closed(peer)
    server.close()
    keepServers()
  },

  async throwingWrite() {
    const thrown = new Promise(resolve => process.on('uncaughtException', resolve))
    process.on('uncaughtException', error => log.push(`uncaught ${error.message}`))
    const { client, server } = await connect({ pauseOnConnect: true })
    client.write(LARGE, error => {
      log.push(`write ${(error as NodeJS.ErrnoException | undefined)?.code}`)
      throw new Error('of the write')
    })
    client.on('close', () => log.push('close'))
    await sleep(20)
    client.destroy()
    await Promise.all([closed(client), thrown])
    server.close()
    forgetWatched()
  },
}

/** The peer of a socket that writes, and does not read, ends. */
async function resetWriter(isSomethingUnread: boolean): Promise<void> {
  const { client, peer, server } = await connect({ pauseOnConnect: true })
  client.pause()
  if (isSomethingUnread) client.write('unread')
  peer.write(LARGE, error => log.push(`server write ${(error as NodeJS.ErrnoException | null)?.code}`))
  await sleep(50)
  client.destroy()
  await closed(peer)
  server.close()
  keepServers()
}

/** The other one's have no order between them. */
function keepServers(): void {
  log.splice(0, log.length, ...log.filter(line => line.startsWith('server')))
}

/** What `watch` has seen of two sockets has no order. */
function forgetWatched(): void {
  log.splice(0, log.length, ...log.filter(line => !/^(client|server) /.test(line)))
}

await SCENARIOS[process.argv[2] as string]?.()
process.send?.({ transport: wire.transport, log }, () => process.exit())
