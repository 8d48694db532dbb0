/** Raw sockets between real processes, over shared memory and over TCP: the same interface, the same outcome. */
import { randomBytes } from 'node:crypto'
import { EventEmitter, once, setMaxListeners } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { CANDIDATE_COUNT } from '../../../fastsockets/bootstrap/hashed-port.ts'
import { CompletionQueue, connect, listen, type RawSocket } from '../../../fastsockets/raw/index.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { crowdedPort } from '../../support/ports.ts'
import { program, relinked } from '../../support/relinked.ts'
import { withWatchdog } from '../../support/until.ts'

const WIRES = ['shm', 'tcp'] as const
type Wire = (typeof WIRES)[number]

const SPIN_MS = 20_000
/** More than a channel has credits for. */
const CONNECTS = 4096 + 64

/** Starts a raw server in a process of its own and connects to it over `wire`. */
async function connected(
  t: Test,
  wire: Wire,
  ...args: string[]
): Promise<{ server: Child; socket: RawSocket }> {
  const env = wire === 'tcp' ? { ...plainEnvironment(), FASTSOCKETS_DISABLE: '1' } : plainEnvironment()
  const server = new Child(t, program('raw-server'), args, { env })
  const { port } = await server.receive<{ port: number }>()
  const socket = await connect({ port, host: '127.0.0.1' })
  t.teardown(() => socket.close())
  t.match(socket.transport, wire === 'shm' ? { transport: 'shm' } : { reason: { code: 'NOT_RELINKED' } })
  if (args[0] !== 'never-accept') t.strictSame(await server.receive(), { accepted: wire })
  return { server, socket }
}

async function receiveAll(socket: RawSocket): Promise<Buffer> {
  const parts: Buffer[] = []
  const buffer = Buffer.alloc(10_000)
  for (;;) {
    const length = await withWatchdog('bytes', socket.recv(buffer))
    if (length === 0) return Buffer.concat(parts)
    parts.push(Buffer.from(buffer.subarray(0, length)))
  }
}

async function receiveExactly(socket: RawSocket, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length; ) at += await withWatchdog('bytes', socket.recv(bytes.subarray(at)))
  return bytes
}

for (const wire of WIRES) {
  t.test(`over ${wire}: what is sent comes back, whatever its size`, async t => {
    const { socket } = await connected(t, wire, 'echo')
    for (const size of [1, 64, 97, 1000, 65_536, 65_537, 1_000_000, 5_000_000]) {
      const sent = randomBytes(size)
      const [count, received] = await Promise.all([socket.send(sent), receiveExactly(socket, size)])
      t.equal(count, size)
      t.ok(received.equals(sent), `${size} bytes`)
    }
    const { bytesIn, bytesOut } = socket.transport
    t.strictSame({ bytesIn, bytesOut }, { bytesIn: 6_132_235, bytesOut: 6_132_235 })
  })

  t.test(`over ${wire}: what is no buffer is refused, and harms nothing`, async t => {
    const { socket } = await connected(t, wire, 'echo')
    for (const wrong of [undefined, null, 'text', 5, {}, [1], new ArrayBuffer(4), new Uint16Array(2)]) {
      const bytes = wrong as unknown as Uint8Array
      const error = { name: 'TypeError', code: /^ERR_INVALID_ARG_/ }
      t.throws(() => socket.trySend(bytes), error)
      t.throws(() => socket.tryRecv(bytes), error)
      await t.rejects(socket.send(bytes), error)
      await t.rejects(socket.recv(bytes), error)
    }
    await socket.send(Buffer.from('still here'))
    t.equal(String(await receiveExactly(socket, 10)), 'still here')
  })

  t.test(`over ${wire}: two programs that poll never need the event loop`, async t => {
    const { socket } = await connected(t, wire, 'echo-polling')
    const sent = randomBytes(3_000_000)
    const received = Buffer.alloc(sent.length)
    const deadlineMs = performance.now() + SPIN_MS
    let out = 0
    let back = 0
    while (back < sent.length && performance.now() < deadlineMs) {
      if (out < sent.length) out += socket.trySend(sent.subarray(out, out + 100_000))
      back += socket.tryRecv(received.subarray(back)) ?? 0
    }
    t.ok(received.equals(sent))
    socket.shutdown()
    let end: number | undefined
    while (end === undefined && performance.now() < deadlineMs) end = socket.tryRecv(received)
    t.equal(end, 0, 'the end is seen without the event loop, too')
    t.equal(socket.tryRecv(received), 0, 'and again')
  })

  t.test(`over ${wire}: each side ends its own direction`, async t => {
    const { socket } = await connected(t, wire, 'count')
    await socket.send(Buffer.alloc(200_000))
    const last = socket.send(Buffer.alloc(1))
    socket.shutdown()
    t.equal(await last, 1, 'what was sent before the shutdown arrives')
    await t.rejects(socket.send(Buffer.alloc(1)), { code: 'EPIPE', syscall: 'write' })
    t.throws(() => socket.trySend(Buffer.alloc(1)), { code: 'EPIPE', syscall: 'write' })
    t.equal(String(await receiveAll(socket)), '200001')
    t.equal(await socket.recv(Buffer.alloc(1)), 0, 'the end stays the end')
  })

  t.test(`over ${wire}: posted receives are filled in their order`, async t => {
    const { socket } = await connected(t, wire, 'echo')
    const buffers = [Buffer.alloc(10), Buffer.alloc(10), Buffer.alloc(10)]
    const receives = buffers.map(buffer => socket.recv(buffer))
    t.equal(socket.tryRecv(Buffer.alloc(1)), undefined, 'those that are posted come first')
    const sent = randomBytes(30)
    await socket.send(sent)
    t.strictSame(await Promise.all(receives), [10, 10, 10])
    t.ok(Buffer.concat(buffers).equals(sent))
  })

  t.test(`over ${wire}: a reader that stops, stops its sender, and nothing is lost`, async t => {
    const { server, socket } = await connected(t, wire, 'hold')
    let sent = 0
    const chunk = Buffer.alloc(50_000)
    for (let refused = 0; refused < 1000; ) {
      const length = socket.trySend(chunk)
      sent += length
      refused = length === 0 ? refused + 1 : 0
    }
    t.ok(sent > chunk.length, `${sent} bytes without a reader`)
    const more = socket.send(Buffer.alloc(3_000_000)).then(length => {
      sent += length
    })
    t.equal(socket.trySend(chunk), 0, 'it does not overtake')
    server.send({})
    await withWatchdog('the send', more)
    socket.shutdown()
    t.equal(String(await receiveAll(socket)), String(sent))
  })

  t.test(`over ${wire}: a peer that closes with bytes unread resets the connection`, async t => {
    const { socket } = await connected(t, wire, 'rude')
    await socket.send(Buffer.alloc(100))
    await t.rejects(withWatchdog('the reset', socket.recv(Buffer.alloc(1))), {
      code: 'ECONNRESET',
      syscall: 'read',
      message: 'read ECONNRESET',
    })
    t.throws(() => socket.tryRecv(Buffer.alloc(1)), { code: 'ECONNRESET' })
    let failure: NodeJS.ErrnoException | undefined
    const deadlineMs = performance.now() + SPIN_MS
    while (failure === undefined && performance.now() < deadlineMs) {
      try {
        socket.trySend(Buffer.alloc(1))
      } catch (error) {
        failure = error as NodeJS.ErrnoException
      }
    }
    t.match(failure, { code: /^(EPIPE|ECONNRESET)$/, syscall: 'write' })
  })

  t.test(`over ${wire}: a reset is one, though nothing was left unread`, async t => {
    const { socket } = await connected(t, wire, 'reset')
    await socket.send(Buffer.alloc(1))
    await t.rejects(withWatchdog('the reset', socket.recv(Buffer.alloc(1))), { code: 'ECONNRESET' })
  })

  t.test(`over ${wire}: a peer that is killed is noticed in a loop of polls`, async t => {
    const { server, socket } = await connected(t, wire, 'hold')
    server.process.kill('SIGKILL')
    const buffer = Buffer.alloc(1)
    const deadlineMs = performance.now() + SPIN_MS
    let length: number | undefined
    while (length === undefined && performance.now() < deadlineMs) length = socket.tryRecv(buffer)
    t.equal(length, 0)
  })

  t.test(
    `over ${wire}: a completion queue names a socket whose peer is killed, in a loop of polls`,
    async t => {
      const { server, socket } = await connected(t, wire, 'hold')
      const queue = new CompletionQueue()
      queue.add(socket)
      server.process.kill('SIGKILL')
      const deadlineMs = performance.now() + SPIN_MS
      let member: unknown
      while (member === undefined && performance.now() < deadlineMs) member = queue.poll()
      t.equal(member, socket)
      t.equal(socket.tryRecv(Buffer.alloc(1)), 0)
    },
  )

  t.test(`over ${wire}: a peer that is killed ends a posted receive, and a send that waits`, async t => {
    const { server, socket } = await connected(t, wire, 'hold')
    const received = socket.recv(Buffer.alloc(1)).catch((error: NodeJS.ErrnoException) => error.code)
    const sent = socket.send(Buffer.alloc(20_000_000)).catch((error: NodeJS.ErrnoException) => error.code)
    server.process.kill('SIGKILL')
    t.ok(['ECONNRESET', 'EPIPE'].includes(String(await withWatchdog('the send', sent))))
    t.ok([0, 'ECONNRESET'].includes((await withWatchdog('the receive', received)) ?? ''))
  })

  t.test(`over ${wire}: to close cuts short what waits`, async t => {
    const { socket } = await connected(t, wire, 'hold')
    const received = socket.recv(Buffer.alloc(1))
    const sent = socket.send(Buffer.alloc(20_000_000))
    socket.close()
    await t.rejects(received, { code: 'ECANCELED', syscall: 'read' })
    await t.rejects(sent, { code: 'ECANCELED', syscall: 'write' })
    await t.rejects(socket.recv(Buffer.alloc(1)), { code: 'EBADF' })
    await t.rejects(socket.send(Buffer.alloc(1)), { code: 'EBADF' })
    t.throws(() => socket.tryRecv(Buffer.alloc(1)), { code: 'EBADF' })
    t.throws(() => socket.trySend(Buffer.alloc(1)), { code: 'EBADF' })
    socket.close()
  })
}

t.test('the backlog: those that are in it wait, the next is reset', async t => {
  const server = new Child(t, program('raw-server'), ['never-accept', '2'])
  const { port } = await server.receive<{ port: number }>()
  const sockets = [await connect({ port, host: '127.0.0.1' }), await connect({ port, host: '127.0.0.1' })]
  for (const socket of sockets) t.equal(socket.transport.transport, 'shm')
  // The reset may be faster than the end of the connect.
  const late = connect({ port, host: '127.0.0.1' }).then(socket => socket.recv(Buffer.alloc(1)))
  await t.rejects(withWatchdog('the reset', late), { code: 'ECONNRESET' })
  for (const socket of sockets) {
    t.equal(await socket.send(Buffer.from('x')), 1)
    socket.close()
  }
})

t.test('a relinked server that knows nothing of raw sockets', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  for (let i = 0; i < 3; i++) {
    const socket = await connect({ port, host: '127.0.0.1' })
    t.equal(socket.transport.transport, 'shm')
    await socket.send(Buffer.from('hello'))
    t.equal(String(await receiveExactly(socket, 5)), 'hello')
    socket.shutdown()
    t.equal(await socket.recv(Buffer.alloc(1)), 0)
    socket.close()
  }
})

for (const [options, wire] of [
  [relinked(), 'shm'],
  [{}, 'tcp'],
] as const) {
  t.test(`a client that knows nothing of raw sockets, over ${wire}`, async t => {
    const server = new Child(t, program('raw-server'), ['greet'])
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('client'), [String(port)], options)
    t.match(await client.receive(), { connected: wire })
    t.strictSame(await server.receive(), { accepted: wire })
  })
}

t.test('both ends in one thread', async t => {
  const server = await listen({ host: '127.0.0.1' })
  const [near, far] = await Promise.all([
    connect({ port: server.address.port, host: '127.0.0.1' }),
    server.accept(),
  ])
  t.equal(near.transport.transport, 'shm')
  await near.send(Buffer.from('across'))
  t.equal(String(await receiveExactly(far, 6)), 'across')
  near.close()
  t.equal(await far.recv(Buffer.alloc(1)), 0)
  far.close()
  const accepted = server.accept()
  server.close()
  await t.rejects(accepted, { code: 'ECANCELED', syscall: 'accept' })
  await t.rejects(server.accept(), { code: 'EBADF', syscall: 'accept' })
})

t.test('there is no listener, or it may not be asked', async t => {
  const shortLived = createServer().listen(0, '127.0.0.1')
  await once(shortLived, 'listening')
  const { port } = shortLived.address() as AddressInfo
  const options = { host: '127.0.0.1', port }
  await t.rejects(listen(options), { code: 'EADDRINUSE', syscall: 'listen' })
  shortLived.close()
  await once(shortLived, 'close')
  await t.rejects(connect(options), { code: 'ECONNREFUSED', syscall: 'connect' })
  await t.rejects(connect({ ...options, host: 'name.invalid' }), { code: 'ENOTFOUND' })
  await t.rejects(connect({ ...options, port: 0 }), { code: 'ERR_SOCKET_BAD_PORT' })
  await t.rejects(listen({ backlog: 0 }), { code: 'ERR_OUT_OF_RANGE' })
})

t.test('an abort signal ends a connect and an accept', async t => {
  const reason = new Error('enough')
  await t.rejects(connect({ port: 9, host: '127.0.0.1', signal: AbortSignal.abort(reason) }), reason)
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => void silent.close())
  const controller = new AbortController()
  const connecting = connect({
    port: (silent.address() as AddressInfo).port,
    host: '127.0.0.1',
    signal: controller.signal,
  })
  controller.abort(reason)
  await t.rejects(connecting, reason)
  const server = await listen({ host: '127.0.0.1' })
  const waiting = new AbortController()
  const accepted = server.accept({ signal: waiting.signal })
  waiting.abort(reason)
  await t.rejects(accepted, reason)
  server.close()
})

t.test('an abort signal ends a connect that goes by TCP, while the fast way is looked for', async t => {
  const calls = new EventEmitter()
  // No bootstrap answers there, so the search takes its time.
  const port = await crowdedPort(t, CANDIDATE_COUNT, socket => calls.emit('call', socket.resume()))
  const called = once(calls, 'call')
  const server = createServer(socket => socket.resume()).listen(port, '127.0.0.1')
  t.teardown(() => void server.close())
  await once(server, 'listening')
  const controller = new AbortController()
  const reason = new Error('enough')
  const connecting = connect({ port, host: '127.0.0.1', signal: controller.signal })
  await called
  controller.abort(reason)
  await t.rejects(connecting, reason)
})

t.test('an abort signal that comes when all is settled does nothing', async t => {
  const server = await listen({ host: '127.0.0.1', backlog: CONNECTS })
  t.teardown(() => server.close())
  const { port } = server.address
  const controller = new AbortController()
  const { signal } = controller
  setMaxListeners(0, signal)
  const first = await connect({ port, host: '127.0.0.1' })
  // More than the channel has credits for: some go by TCP.
  const sockets = await Promise.allSettled(
    Array.from({ length: CONNECTS }, () => connect({ port, host: '127.0.0.1', signal })),
  )
  t.ok(sockets.some(it => it.status === 'rejected' || it.value.transport.reason?.code === 'LIMIT'))
  controller.abort()
  // What a listener of a signal throws is thrown here.
  await nextTurn()
  first.close()
  for (const socket of sockets) if (socket.status === 'fulfilled') socket.value.close()
})

t.test('arguments that make no sense', async t => {
  const { socket } = await connected(t, 'shm', 'echo')
  await t.rejects(socket.recv(new Uint8Array(0)), { code: 'ERR_INVALID_ARG_VALUE' })
  t.throws(() => socket.tryRecv(new Uint8Array(0)), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.rejects(socket.send('text' as never), { code: 'ERR_INVALID_ARG_TYPE' })
  t.equal(await socket.send(new Uint8Array(0)), 0)
  t.equal(socket.trySend(new Uint8Array(0)), 0)
})

t.test('options, signals and members of the wrong kind are refused with a code', async t => {
  const error = { name: 'TypeError', code: 'ERR_INVALID_ARG_TYPE' }
  const server = await listen()
  t.teardown(() => server.close())
  const { port } = server.address
  const notSignal = { signal: 5 as unknown as AbortSignal }
  for (const wrong of [null, 'localhost', 5] as never[]) {
    await t.rejects(connect(wrong), error)
    await t.rejects(listen(wrong), error)
  }
  await t.rejects(connect({ port, ...notSignal }), error)
  await t.rejects(server.accept(notSignal), error)
  await t.rejects(server.accept(null as never), error)
  const queue = new CompletionQueue()
  await t.rejects(queue.wait(notSignal), error)
  await t.rejects(queue.wait(null as never), error)
  t.throws(() => queue.add(undefined as never), error)
  t.throws(() => queue.add({} as never), error)
  t.equal(queue.poll(), undefined, 'the queue works all the same')
})
