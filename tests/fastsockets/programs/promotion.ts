/**
 * Two programs whose connections start on TCP. argv: 'server' or 'client', and the server's port. The server says { port }, and
 * answers as the first byte of a connection says: E echoes, R plays at random. It reports what it
 * saw of each connection that plays to its end. Asked anything, it says how many are open. The client runs what it is sent: { run, ...arguments }.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import tls from 'node:tls'
import { transportOf } from '../../../fastsockets/index.ts'
import { moveToTcp } from '../../../fastsockets/promotion/demotion.ts'
import { certificate } from '../../interop/certificate.ts'
import { Random } from '../../support/random.ts'
import { eventually } from '../../support/until.ts'

const [role, port = ''] = process.argv.slice(2)
const context = new AsyncLocalStorage<string>()
const LARGE = Buffer.alloc(1024 * 1024)

export interface Played {
  readonly id: number
  readonly sent: number
  readonly received: number
  readonly sentHash: string
  readonly receivedHash: string
  readonly end: string
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly transport: string
  readonly returned: number
}

/** Writes and reads at random. `breaks`: destroys or resets the socket somewhere. `returns`: moves it back to TCP now and then. */
function play(
  socket: Socket,
  id: number,
  random: Random,
  breaks: boolean,
  returns: boolean,
): Promise<Played> {
  const total = random.within(1, returns ? 200_000 : 2_000_000)
  const breakAt = breaks ? random.within(0, total) : Number.POSITIVE_INFINITY
  const [sentHash, receivedHash] = [createHash('sha1'), createHash('sha1')]
  let [sent, received, end, returned] = [0, 0, '', 0]
  const returnSometimes = (): void => {
    if (!returns || random.within(0, 99) > 4) return
    void moveToTcp(socket).then(isBack => {
      if (isBack) returned++
    })
  }
  const write = (): void => {
    while (sent < total && !socket.destroyed) {
      const kind = random.within(0, 99)
      const longest = returns ? 2000 : kind < 3 ? 1 << 20 : kind < 30 ? 1 << 16 : 600
      const bytes = Buffer.alloc(Math.min(total - sent, random.within(1, longest)), random.word())
      sent += bytes.length
      sentHash.update(bytes)
      returnSometimes()
      if (kind % 10 === 0) socket.cork()
      const isBelow = socket.write(bytes)
      if (kind % 10 === 0) {
        socket.write(new Uint8Array(0))
        process.nextTick(() => socket.uncork())
      }
      if (sent >= breakAt) return void (kind % 2 === 0 ? socket.destroy() : socket.resetAndDestroy())
      if (!isBelow) return void socket.once('drain', write)
      if (kind > 97) return void setTimeout(write, 2)
      if (kind > (returns ? 20 : 80)) return void setImmediate(write)
    }
    if (!socket.destroyed) socket.end()
  }
  socket.on('data', bytes => {
    received += bytes.length
    receivedHash.update(bytes)
    returnSometimes()
    if (random.within(0, 99) > 2) return
    socket.pause()
    setTimeout(() => socket.resume(), 2)
  })
  socket.on('end', () => {
    end += 'end '
  })
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    end += `${code} `
  })
  const closed = new Promise(resolve => socket.on('close', resolve))
  write()
  return closed.then(() => ({
    id,
    sent,
    received,
    sentHash: sentHash.digest('hex'),
    receivedHash: receivedHash.digest('hex'),
    end: end.trim(),
    bytesRead: socket.bytesRead,
    bytesWritten: socket.bytesWritten,
    transport: transportOf(socket).transport,
    returned,
  }))
}

function serve(socket: Socket): void {
  socket.once('data', first => {
    socket.pause()
    const kind = String.fromCharCode(first[0] as number)
    if (kind === 'R') {
      const [id, seed, how] = [first.readUInt32LE(1), first.readUInt32LE(5), first[9] as number]
      const [breaks, returns] = [(how & 1) !== 0, (how & 2) !== 0]
      if (first.length > 10) socket.unshift(first.subarray(10))
      void play(socket, id, new Random(seed), breaks, returns).then(
        played => breaks || process.send?.(played),
      )
    } else {
      const echo = (bytes: Buffer): void => {
        const text = String(bytes)
        if (text === 'where') socket.write(JSON.stringify(ends(socket)))
        else if (text === 'upgrade') secure(socket, echo)
        else socket.write(bytes)
        // Longer than the client waits before it looks at what it has read.
        if (text === 'block') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
      }
      socket.on('data', echo)
      socket.on('end', () => socket.end())
      socket.on('error', () => {})
      if (first.length > 1) socket.unshift(first.subarray(1))
    }
    socket.resume()
  })
}

function secure(socket: Socket, echo: (bytes: Buffer) => void): void {
  socket.off('data', echo)
  const above = new tls.TLSSocket(socket, { isServer: true, ...certificate() })
  above.on('data', bytes => above.write(bytes))
  above.on('error', () => above.destroy())
  socket.write('go')
}

function ends({ localAddress, localPort, remoteAddress, remotePort }: Socket): unknown[] {
  return [localAddress, localPort, remoteAddress, remotePort]
}

async function ask(socket: Socket, text: string): Promise<string> {
  socket.write(text)
  let answer = ''
  while (answer.length < text.length || (text === 'where' && !answer.endsWith(']')))
    answer += String((await once(socket, 'data'))[0])
  return answer
}

async function open(first: string): Promise<Socket> {
  const socket = net.connect({ port: Number(port), host: '127.0.0.1', noDelay: true, allowHalfOpen: true })
  await once(socket, 'connect')
  socket.write(first)
  return socket
}

const events: unknown[] = []

const runs: Record<string, (message: Record<string, number>) => Promise<unknown>> = {
  /** Echoes until the connection has moved, or `count` times. */
  async echo({ count = 2000 }) {
    const socket = await open('E')
    const seen = new Set<string>()
    let [isRight, n] = [true, 0]
    const look = (): string => {
      const { transport, promotion = '' } = transportOf(socket)
      seen.add(`${transport} ${promotion}`.trim())
      return transport
    }
    for (; n < count && look() === 'tcp'; n++)
      isRight &&= (await ask(socket, `message ${n}`)) === `message ${n}`
    for (let i = 0; i < 20; i++) isRight &&= (await ask(socket, `after ${i}`)) === `after ${i}`
    const there = JSON.parse(await ask(socket, 'where')) as unknown[]
    const { bytesRead, bytesWritten } = socket
    const { reason: slow, promoted } = transportOf(socket)
    const reason = slow?.code
    const { remoteAddress, remotePort, localAddress, localPort } = socket
    const here = [remoteAddress, remotePort, localAddress, localPort]
    socket.end()
    await once(socket, 'close')
    return { isRight, n, seen: [...seen], here, there, bytesRead, bytesWritten, reason, promoted, events }
  },
  /** Reads while the server is looked for, and is silent afterwards. */
  async once() {
    const socket = await open('E')
    socket.write('block')
    const [answer] = await once(socket, 'data')
    await eventually('the move', () => transportOf(socket).transport === 'shm')
    const isRight = String(answer) === 'block' && (await ask(socket, 'after')) === 'after'
    socket.destroy()
    return { isRight }
  },
  /** A socket that reads into a buffer of the program's. */
  async ownBuffer({ count = 300 }) {
    let answers = 0
    const onread = { buffer: Buffer.alloc(16), callback: () => answers++ > -1 }
    const socket = net.connect({ port: Number(port), host: '127.0.0.1', noDelay: true, onread })
    await once(socket, 'connect')
    socket.write('E')
    for (let n = 0; n < count; n++) {
      const before = answers
      socket.write('x')
      while (answers === before) await new Promise(resolve => setImmediate(resolve))
    }
    const { transport, reason } = transportOf(socket)
    socket.destroy()
    return { transport, reason: reason?.code, answers }
  },
  /** Says in which contexts the program's listener runs. */
  async context() {
    const socket = await context.run('connecting', () => open('E'))
    const seen = new Set<string>()
    socket.on('data', () => seen.add(`${context.getStore()} ${transportOf(socket).transport}`))
    for (let i = 0; i < 300; i++) await context.run('writing', () => ask(socket, 'x'))
    socket.destroy()
    return { seen: [...seen] }
  },
  async play({ id = 0, seed = 0, breaks = 0, returns = 0, serverSeed = 0 }) {
    const socket = await open('')
    const head = Buffer.alloc(10, 'R')
    head.writeUInt32LE(id, 1)
    head.writeUInt32LE(serverSeed, 5)
    head[9] = breaks | (returns << 1)
    socket.write(head)
    return await play(socket, id, new Random(seed), breaks === 1, returns === 1)
  },
  /** Says 'moved', then how the connection ends. */
  async untilClosed() {
    const socket = await open('E')
    let end = ''
    socket.on('end', () => {
      end = 'end'
      socket.end()
    })
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      end = String(code)
    })
    while (transportOf(socket).transport === 'tcp') await ask(socket, 'x')
    for (let i = 0; i < 10; i++) await ask(socket, 'y')
    process.send?.('moved')
    socket.resume()
    await new Promise(resolve => socket.on('close', resolve))
    return { end }
  },
  /** Moves, returns to TCP, moves again, and returns at the server's end. */
  async back() {
    const socket = await open('E')
    const seen: string[] = []
    let isRight = true
    for (const where of ['shm', 'tcp', 'shm', 'tcp']) {
      if (where === 'tcp') isRight &&= await moveToTcp(socket)
      for (let n = 0; n < 2000 && transportOf(socket).transport !== where; n++)
        isRight &&= (await ask(socket, `to ${where} ${n}`)) === `to ${where} ${n}`
      for (let n = 0; n < 20; n++) {
        isRight &&= (await ask(socket, `on ${where} ${n}`)) === `on ${where} ${n}`
        const { transport } = transportOf(socket)
        if (seen.at(-1) !== transport) seen.push(transport)
      }
    }
    const { bytesRead, bytesWritten } = socket
    socket.end()
    await once(socket, 'close')
    return { isRight, seen, isEven: bytesRead === bytesWritten - 1 }
  },
  /** TLS put over a socket that has exchanged `after` bytes first. */
  async tls({ after = 0 }) {
    const raw = await open('E')
    for (let n = 0; n < after; n++) await ask(raw, 'x')
    const before = transportOf(raw).transport
    raw.write('upgrade')
    await once(raw, 'data')
    const secure = tls.connect({ socket: raw, rejectUnauthorized: false })
    await once(secure, 'secureConnect')
    let isRight = true
    for (let i = 0; i < 100; i++) {
      secure.write(`secure ${i}`)
      isRight &&= String((await once(secure, 'data'))[0]) === `secure ${i}`
    }
    const { transport } = transportOf(secure)
    secure.destroy()
    return { isRight, before, transport }
  },
  /** Requests on one connection, whose wire changes below them. */
  async http({ port: httpPort = 0, count = 200 }) {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const seen = new Set<string>()
    let isRight = true
    for (let i = 0; i < count; i++) {
      const body = Buffer.alloc(i % 50 === 0 ? 400_000 : i * 17, i)
      const request = http.request({ port: httpPort, host: '127.0.0.1', agent, method: 'POST' })
      if (body.length > 100_000) {
        request.write(body.subarray(0, 200_000))
        setTimeout(() => request.end(body.subarray(200_000)), 1)
      } else request.end(body)
      const [response] = (await once(request, 'response')) as [http.IncomingMessage]
      const answer = Buffer.concat(await response.toArray())
      isRight &&= answer.equals(body)
      seen.add(`${response.headers['x-wire']} ${transportOf(request.socket as Socket).transport}`)
    }
    agent.destroy()
    return { isRight, seen: [...seen] }
  },
  /** Pipelined requests, whose answers are read once the connection has moved: the server has paused it by then. */
  async pipelined({ port: httpPort = 0, count = 64 }) {
    const socket = net.connect(httpPort, '127.0.0.1')
    await once(socket, 'connect')
    const get = 'GET /large HTTP/1.1\r\nHost: localhost\r\n'
    socket.write(`${get}\r\n`.repeat(count - 1))
    await eventually('the move', () => transportOf(socket).transport === 'shm')
    socket.write(`${get}Connection: close\r\n\r\n`)
    let length = 0
    for await (const chunk of socket) length += chunk.length
    return { answers: Math.floor(length / LARGE.length) }
  },
}

if (role === 'server') {
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, serve)
  const web = context.run('listening', () =>
    http.createServer((request, response) => {
      if (request.url === '/large') return response.end(LARGE)
      response.setHeader('x-wire', `${transportOf(request.socket).transport} ${context.getStore()}`)
      request.pipe(response)
    }),
  )
  process.on('message', () => {
    server.getConnections((_error, count) => process.send?.({ count }))
  })
  server.listen(0, '127.0.0.1', () => {
    context.run('listening', () =>
      web.listen(0, '127.0.0.1', () => {
        const portOf = (one: net.Server): number => (one.address() as AddressInfo).port
        process.send?.({ port: portOf(server), httpPort: portOf(web) })
      }),
    )
  })
} else {
  diagnostics.subscribe('fastsockets:promoted', message => {
    const { transport, role, bytesIn, bytesOut } = message as Record<string, unknown>
    events.push({ transport, role, bytesIn, bytesOut })
  })
  process.on('message', message => {
    const { run, ...rest } = message as { run: string } & Record<string, number>
    void runs[run]?.(rest).then(
      result => process.send?.(result as object),
      error => process.send?.({ error: String(error?.stack) }),
    )
  })
  process.send?.('ready')
}
