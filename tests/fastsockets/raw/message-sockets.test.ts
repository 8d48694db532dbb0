/** Message sockets between real processes, over shared memory and over TCP: the same interface, the same outcome. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  CompletionQueue,
  connect,
  END,
  listen,
  MESSAGE_MAX,
  type MessageSocket,
} from '../../../fastsockets/raw/index.ts'
import { EAGER_MAX, encodeHead, PREAMBLE_SIZE } from '../../../fastsockets/raw/message-layout.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program } from '../../support/relinked.ts'
import { withWatchdog } from '../../support/until.ts'

const SPIN_MS = 20_000
const ZCOPY = { FASTSOCKETS_ZCOPY_THRESHOLD: '65536' }
const WIRES: Record<string, NodeJS.ProcessEnv> = {
  shm: plainEnvironment(),
  tcp: { ...plainEnvironment(), FASTSOCKETS_DISABLE: '1' },
}

/** Connects to a server in a process of its own, which has these `args`. */
async function connected(
  t: Test,
  wire: string,
  ...args: string[]
): Promise<{ server: Child; socket: MessageSocket }> {
  const server = new Child(t, program('message-server'), args, { env: WIRES[wire] as NodeJS.ProcessEnv })
  const { port } = await server.receive<{ port: number }>()
  const socket = await connect({ type: 'datagram', port, host: '127.0.0.1' })
  t.teardown(() => socket.close())
  t.strictSame(await server.receive(), { accepted: wire })
  t.equal(socket.transport.transport, wire)
  return { server, socket }
}

async function receive(socket: MessageSocket, size = MESSAGE_MAX): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(size)
  return buffer.subarray(0, await withWatchdog('a message', socket.recv(buffer)))
}

/** Polls without the event loop until `step` returns something. */
function spin<T>(step: () => T | undefined): T {
  const endMs = performance.now() + SPIN_MS
  for (;;) {
    const result = step()
    if (result !== undefined) return result
    if (performance.now() > endMs) throw new Error('nothing came')
  }
}

for (const wire of Object.keys(WIRES)) {
  t.test(`over ${wire}: each message comes back as one, whatever its size`, async t => {
    const { socket } = await connected(t, wire, 'echo')
    for (const size of [0, 1, 64, 32_768, 65_536, EAGER_MAX, EAGER_MAX + 1, 1_000_000, MESSAGE_MAX]) {
      const sent = randomBytes(size)
      const [count, received] = await Promise.all([socket.send(sent), receive(socket)])
      t.equal(count, size)
      t.ok(received.equals(sent), `${size} bytes`)
    }
  })

  t.test(`over ${wire}: boundaries and order are kept, however fast they come`, async t => {
    const { socket } = await connected(t, wire, 'count')
    for (let i = 0; i < 200; i++) {
      const message = await receive(socket, 80_000)
      if (message.length !== 4 + ((i * 7919) % 70_000) || message.readInt32LE() !== i) t.fail(`message ${i}`)
    }
    t.equal(await socket.recv(Buffer.alloc(1)), END)
    t.equal(socket.tryRecv(Buffer.alloc(1)), END, 'the end stays the end')
    t.equal(socket.nextLength(), END)
  })

  t.test(`over ${wire}: a message that exceeds the buffer is truncated, and says so`, async t => {
    const { socket } = await connected(t, wire, 'echo')
    const sent = randomBytes(500_000)
    const small = Buffer.alloc(100)
    for (const size of [0, 1000, 500_000]) {
      const isSent = socket.send(sent.subarray(0, size))
      const into = small.subarray(0, Math.min(size, 100))
      t.equal(await withWatchdog('a message', socket.recv(into)), size, 'its own length')
      t.ok(into.equals(sent.subarray(0, into.length)), 'what fits is there')
      await isSent
    }
    spin(() => socket.trySend(sent) || undefined)
    t.equal(
      spin(() => socket.tryRecv(small)),
      500_000,
    )
    await socket.send(Buffer.from('next'))
    t.equal(String(await receive(socket)), 'next', 'the rest is lost, and nothing else')
  })

  t.test(`over ${wire}: the length may be asked first`, async t => {
    const { socket } = await connected(t, wire, 'echo')
    t.equal(socket.nextLength(), undefined)
    await socket.send(Buffer.alloc(12_345, 1))
    const length = spin(() => socket.nextLength())
    t.equal(length, 12_345)
    t.equal((await receive(socket, length)).length, length)
  })

  t.test(`over ${wire}: two programs that poll never need the event loop`, async t => {
    const { socket } = await connected(t, wire, 'echo-polling')
    const buffer = Buffer.alloc(MESSAGE_MAX)
    for (const size of [0, 4, 64, 50_000, 100_000, 3_000_000, MESSAGE_MAX]) {
      const sent = randomBytes(size)
      spin(() => socket.trySend(sent) || undefined)
      t.equal(
        spin(() => socket.tryRecv(buffer)),
        size,
      )
      t.ok(buffer.subarray(0, size).equals(sent), `${size} bytes`)
    }
    for (let i = 0; i < 1000; i++) spin(() => socket.trySend(Buffer.from([i & 0xff])) || undefined)
    for (let i = 0; i < 1000; i++) {
      spin(() => socket.tryRecv(buffer))
      if (buffer[0] !== (i & 0xff)) t.fail(`message ${i}`)
    }
    socket.shutdown()
    t.equal(
      spin(() => socket.tryRecv(buffer)),
      END,
    )
  })

  for (const behaviour of ['send-first', 'send-first-polling']) {
    t.test(`over ${wire}: both sides send before they receive (${behaviour}): no deadlock`, async t => {
      const { socket } = await connected(t, wire, behaviour)
      if (behaviour === 'send-first') {
        await withWatchdog('the short one', socket.send(Buffer.from('own')))
        await withWatchdog('the long one', socket.send(Buffer.alloc(MESSAGE_MAX, 'ours')))
      } else {
        spin(() => socket.trySend(Buffer.from('own')) || undefined)
        spin(() => socket.trySend(Buffer.alloc(MESSAGE_MAX, 'ours')) || undefined)
      }
      t.equal(String(await receive(socket)), 'short')
      t.ok((await receive(socket)).equals(Buffer.alloc(MESSAGE_MAX, 'theirs')))
      t.equal(String(await receive(socket)), 'own')
      t.ok((await receive(socket)).equals(Buffer.alloc(MESSAGE_MAX, 'ours')))
    })
  }

  t.test(`over ${wire}: a receiver that stops, stops its sender, and nothing is lost`, async t => {
    const { server, socket } = await connected(t, wire, 'hold')
    const message = randomBytes(50_000)
    let count = 0
    for (let refused = 0; refused < 1000; ) {
      if (socket.trySend(message)) {
        count++
        refused = 0
      } else refused++
    }
    t.ok(count > 1, `${count} messages without a receive`)
    const last = socket.send(Buffer.from('last'))
    t.equal(socket.trySend(message), false, 'it does not overtake')
    server.send({})
    for (let i = 0; i < count; i++) if (!(await receive(socket)).equals(message)) t.fail(`message ${i}`)
    t.equal(await last, 4)
    t.equal(String(await receive(socket)), 'last')
  })

  t.test(`over ${wire}: posted receives are filled in their order, and a queue serves them`, async t => {
    const { socket } = await connected(t, wire, 'queue')
    const buffers = [Buffer.alloc(10), Buffer.alloc(10), Buffer.alloc(1_000_000)]
    const receives = buffers.map(buffer => socket.recv(buffer))
    t.equal(socket.tryRecv(Buffer.alloc(10)), undefined, 'posted receives come first')
    for (const text of ['one', 'two']) await socket.send(Buffer.from(text))
    await socket.send(Buffer.alloc(1_000_000, 'three'))
    t.strictSame(await withWatchdog('three messages', Promise.all(receives)), [3, 3, 1_000_000])
    t.equal(String(buffers[0]?.subarray(0, 3)), 'one')
    t.equal(String(buffers[1]?.subarray(0, 3)), 'two')
    t.ok(buffers[2]?.equals(Buffer.alloc(1_000_000, 'three')))
    const queue = new CompletionQueue()
    queue.add(socket)
    for (const size of [5, 0, 5_000_000]) {
      await socket.send(Buffer.alloc(size, 7))
      const buffer = Buffer.alloc(5_000_000)
      let length: number | undefined
      while (length === undefined) {
        t.equal(await withWatchdog('readiness', queue.wait()), socket)
        length = socket.tryRecv(buffer)
      }
      t.equal(length, size)
      t.ok(buffer.subarray(0, size).equals(Buffer.alloc(size, 7)))
    }
  })

  t.test(
    `over ${wire}: an end comes after the messages, a close with unreceived ones is a reset`,
    async t => {
      const { socket } = await connected(t, wire, 'echo')
      await socket.send(Buffer.from('last'))
      socket.shutdown()
      await t.rejects(socket.send(Buffer.from('more')), { code: 'EPIPE' })
      t.equal(String(await receive(socket)), 'last')
      t.equal(await socket.recv(Buffer.alloc(1)), END)

      const { socket: rude } = await connected(t, wire, 'rude')
      const sends = Promise.allSettled(Array.from({ length: 10 }, () => rude.send(Buffer.from('unreceived'))))
      // Over TCP a send may see it first.
      await t.rejects(withWatchdog('the reset', rude.recv(Buffer.alloc(1))), { code: /^(ECONNRESET|EPIPE)$/ })
      await sends
    },
  )

  t.test(`over ${wire}: operations that wait end with the socket, and a dead peer is a reset`, async t => {
    const { server, socket } = await connected(t, wire, 'hold')
    const received = socket.recv(Buffer.alloc(1))
    const sent = Promise.all(Array.from({ length: 4 }, () => socket.send(Buffer.alloc(MESSAGE_MAX))))
    const failures = Promise.allSettled([received, sent])
    await server.kill()
    for (const failure of await withWatchdog('both', failures))
      t.match(failure, { status: 'rejected', reason: { code: /^(ECONNRESET|EPIPE)$/ } })

    const { socket: other } = await connected(t, wire, 'hold')
    const waiting = other.recv(Buffer.alloc(1))
    other.close()
    await t.rejects(waiting, { code: 'ECANCELED' })
    t.throws(() => other.tryRecv(Buffer.alloc(1)), { code: 'EBADF' })
    await t.rejects(other.send(Buffer.alloc(1)), { code: 'EBADF' })
  })

  t.test(`over ${wire}: what is no message is refused, and harms nothing`, async t => {
    const { socket } = await connected(t, wire, 'echo')
    const tooLong = Buffer.alloc(MESSAGE_MAX + 1)
    await t.rejects(socket.send(tooLong), { code: 'EMSGSIZE' })
    t.throws(() => socket.trySend(tooLong), { code: 'EMSGSIZE' })
    for (const wrong of [undefined, 'text', {}, new Uint16Array(2)]) {
      const bytes = wrong as unknown as Uint8Array
      await t.rejects(socket.send(bytes), { code: 'ERR_INVALID_ARG_TYPE' })
      await t.rejects(socket.recv(bytes), { code: 'ERR_INVALID_ARG_TYPE' })
      t.throws(() => socket.trySend(bytes), { code: 'ERR_INVALID_ARG_TYPE' })
      t.throws(() => socket.tryRecv(bytes), { code: 'ERR_INVALID_ARG_TYPE' })
    }
    const taken = Buffer.alloc(1000)
    const lost = socket.recv(taken)
    structuredClone(taken.buffer, { transfer: [taken.buffer] })
    const next = receive(socket)
    await socket.send(Buffer.alloc(1000, 1))
    await t.rejects(withWatchdog('the lost receive', lost), { code: 'EFAULT' })
    t.equal((await next).length, 1000, 'the next receive gets the message')
  })

  const preamble = encodeHead(0, true).subarray(0, PREAMBLE_SIZE).toString('hex')
  const LIES: Record<string, Record<string, string>> = {
    lie: {
      'no message socket': Buffer.from('HTTP/1.1 200 OK').toString('hex'),
      'another version': `${preamble.slice(0, 8)}02000000`,
      'a message that is too long': `${preamble}ffffffff`,
      'a message that is one byte too long': `${preamble}01000001`,
    },
    'lie-and-end': {
      'an end within the preamble': preamble.slice(0, 6),
      'an end within a head': `${preamble}0500`,
      'an end within a message': `${preamble}05000000aabb`,
      'an end within a long message': `${preamble}00000001aabb`,
    },
  }
  t.test(`over ${wire}: a peer that lies gets an error, and no more`, async t => {
    for (const [behaviour, lies] of Object.entries(LIES)) {
      const code = behaviour === 'lie' ? 'EPROTO' : 'ECONNRESET'
      // Each twice.
      const all = Object.values(lies).flatMap(hex => [hex, hex])
      const server = new Child(t, program('message-server'), [behaviour, ...all], {
        env: WIRES[wire] as NodeJS.ProcessEnv,
      })
      const { port } = await server.receive<{ port: number }>()
      for (const name of Object.keys(lies)) {
        const socket = await connect({ type: 'datagram', port, host: '127.0.0.1' })
        await t.rejects(withWatchdog(name, socket.recv(Buffer.alloc(10))), { code }, name)
        await t.rejects(socket.recv(Buffer.alloc(10)), { code }, 'again')
        const polled = await connect({ type: 'datagram', port, host: '127.0.0.1' })
        t.throws(() => spin(() => polled.tryRecv(Buffer.alloc(10))), { code }, `${name}, polled`)
        socket.close()
        polled.close()
      }
    }
    const { socket } = await connected(t, wire, 'lie', `${preamble}00000000020000006869`)
    t.equal(await socket.recv(Buffer.alloc(1)), 0)
    t.equal(String(await receive(socket)), 'hi', 'two messages in one piece')
  })
}

t.test('with ZCopy long messages are fetched from the memory of the sender', async t => {
  process.env.FASTSOCKETS_ZCOPY_THRESHOLD = ZCOPY.FASTSOCKETS_ZCOPY_THRESHOLD
  WIRES.zcopy = { ...plainEnvironment(), ...ZCOPY }
  const server = new Child(t, program('message-server'), ['echo'], { env: WIRES.zcopy })
  const { port } = await server.receive<{ port: number }>()
  const socket = await connect({ type: 'datagram', port, host: '127.0.0.1' })
  t.teardown(() => socket.close())
  const sent = randomBytes(2_000_000)
  for (let i = 0; i < 5; i++) {
    const received = receive(socket)
    await withWatchdog('the send', socket.send(sent))
    t.ok((await received).equals(sent))
  }
  const counts = socket.transport.counts as { zcopyBytesIn: number; zcopyBytesOut: number }
  t.ok(counts.zcopyBytesOut > 0, `${counts.zcopyBytesOut} bytes were fetched here`)
  t.ok(counts.zcopyBytesIn > 0, `${counts.zcopyBytesIn} bytes were fetched there`)
})

t.test('the type of a socket is checked', async t => {
  const type = 'seqpacket' as 'datagram'
  await t.rejects(listen({ type }), { code: 'ERR_INVALID_ARG_VALUE' })
  await t.rejects(connect({ type, port: 1 }), { code: 'ERR_INVALID_ARG_VALUE' })
})
