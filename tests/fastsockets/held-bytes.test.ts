/** Small writes of one turn leave as one message, with `setNoDelay(true)` each at once; and nothing is lost by it. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import net, { type AddressInfo, type Socket, transportOf } from '../../fastsockets/index.ts'
import { HELD_CHUNK_MAX, HELD_MAX, HeldBytes } from '../../fastsockets/stream/held-bytes.ts'
import type { Stream } from '../../fastsockets/stream/stream.ts'
import { CLOSE, CONSUMED, DATA, SEGMENT_MAX, WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { SocketLiar } from '../support/socket-liar.ts'
import { until, withWatchdog } from '../support/until.ts'

const SMALL = 16 * 1024

const heard = (liar: SocketLiar): string[] =>
  liar.said.filter(({ handler }) => handler === DATA).map(({ payload }) => payload.toString())

t.test('what is held goes as one message when the callback is over', async t => {
  const liar = new SocketLiar(t)
  await liar.connect()
  for (const word of ['one ', 'and ', 'two']) t.ok(liar.stream.outgoing.hold(Buffer.from(word)))
  t.same(heard(liar), [])
  await until('the words', () => heard(liar).length > 0)
  t.same(heard(liar), ['one and two'])
})

t.test('no more is held than one message of a small ring takes', async t => {
  const held = new HeldBytes()
  const holder = { flushHeld: () => true }
  const chunk = Buffer.alloc(HELD_CHUNK_MAX)
  t.equal(held.add(holder, chunk, 1.5 * HELD_CHUNK_MAX), true)
  t.equal(held.add(holder, chunk, 1.5 * HELD_CHUNK_MAX), false)
  t.equal(held.length, HELD_CHUNK_MAX)
})

t.test('what is held takes memory for what it is, and nothing takes none', async t => {
  const before = process.memoryUsage().arrayBuffers
  const many = Array.from({ length: 1000 }, () => new HeldBytes())
  for (const held of many) {
    t.equal(held.add({ flushHeld: () => true }, Buffer.alloc(0), HELD_MAX), true)
    held.add({ flushHeld: () => true }, Buffer.alloc(100), HELD_MAX)
  }
  const each = (process.memoryUsage().arrayBuffers - before) / many.length
  t.ok(each < 2048, `${Math.round(each)} bytes each`)
})

t.test('whatever follows goes after it: a write, the end, the close', async t => {
  const liar = new SocketLiar(t)
  await liar.connect()
  liar.stream.outgoing.hold(Buffer.from('a'))
  liar.stream.outgoing.write([Buffer.from('b')])
  liar.stream.outgoing.hold(Buffer.from('c'))
  liar.stream.shutdown()
  await until('the end', () => heard(liar).length === 4)
  t.same(heard(liar), ['a', 'b', 'c', ''])

  const other = new SocketLiar(t)
  await other.connect()
  other.stream.outgoing.hold(Buffer.from('last words'))
  other.stream.close(false)
  await until('the close', () => other.said.some(({ handler }) => handler === CLOSE))
  t.same(heard(other), ['last words'])
})

t.test('64 KiB in the frames of native code leave as one message, others as two', async t => {
  const framed = [Buffer.alloc(SEGMENT_MAX), Buffer.alloc(100)]
  for (const [isFramed, count] of [[true, 1] as const, [false, 2] as const]) {
    const liar = new SocketLiar(t)
    await liar.connect()
    t.ok(liar.stream.outgoing.write(framed, isFramed))
    await until('all of it', () => heard(liar).join('').length === SEGMENT_MAX + 100)
    t.equal(heard(liar).length, count)
  }
})

t.test('sockets keep the order in which they were written to', async t => {
  const liars = [new SocketLiar(t), new SocketLiar(t), new SocketLiar(t)]
  for (const liar of liars) await liar.connect()
  const order: number[] = []
  for (const [i, { stream }] of liars.entries()) {
    const { flushHeld } = stream.outgoing
    stream.outgoing.flushHeld = () => {
      order.push(i)
      return flushHeld.call(stream.outgoing)
    }
    stream.outgoing.hold(Buffer.from('word'))
  }
  await until('the words', () => liars.every(liar => heard(liar).length === 1))
  t.same(order, [0, 1, 2])
})

t.test('nothing that another socket sends overtakes it', async t => {
  const acts: Record<string, (stream: Stream) => void> = {
    write: stream => void stream.outgoing.write([Buffer.from('large')]),
    end: stream => void stream.shutdown(),
    close: stream => stream.close(false),
  }
  for (const [what, act] of Object.entries(acts)) {
    const [first, second] = [new SocketLiar(t), new SocketLiar(t)]
    await Promise.all([first.connect(), second.connect()])
    const order: string[] = []
    const { channel } = first.stream.channel
    const { commit } = channel
    channel.commit = length => {
      order.push('held')
      commit.call(channel, length)
    }
    const other = second.stream.channel.channel
    const { commit: commitOther } = other
    other.commit = length => {
      order.push(what)
      commitOther.call(other, length)
    }
    first.stream.outgoing.hold(Buffer.from('word'))
    act(second.stream)
    t.same(order, ['held', what])
  }
})

t.test('while the ring is full nothing is held: the callback waits for room', async t => {
  const liar = new SocketLiar(t)
  await liar.connect()
  const { channel, outgoing } = liar.stream
  t.ok(outgoing.hold(Buffer.from('a')))
  channel.scheduleSend(liar.stream)
  t.notOk(outgoing.hold(Buffer.from('b')))
})

t.test('large writes, and what finds no window, are not held', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  const { outgoing } = liar.stream
  t.notOk(outgoing.hold(Buffer.alloc(HELD_CHUNK_MAX + 1)))
  for (let held = 0; held < 3 * HELD_MAX; held += HELD_CHUNK_MAX)
    t.ok(outgoing.hold(Buffer.alloc(HELD_CHUNK_MAX)))
  await until('all of it', () => heard(liar).join('').length === 3 * HELD_MAX)
  t.equal(heard(liar).length, 3, 'a message for each buffer that is full')
  // In chunks that are too small to be offered.
  const rest = WINDOW - 3 * HELD_MAX - 5
  const chunks = Array.from({ length: Math.ceil(rest / SMALL) }, (_, i) =>
    Buffer.alloc(Math.min(SMALL, rest - i * SMALL)),
  )
  liar.stream.outgoing.write(chunks)
  t.notOk(outgoing.hold(Buffer.from('123456')), 'beyond the window')
  t.ok(outgoing.hold(Buffer.from('12345')))
  await until('the rest', () => heard(liar).join('').length === WINDOW)
  liar.say(CONSUMED, [to, WINDOW])
  await until('the window', () => outgoing.window.credit === WINDOW)
  t.ok(outgoing.hold(Buffer.from('6')))
})

async function pair(t: Test, options: { noDelay: boolean }): Promise<{ socket: Socket; peer: Child }> {
  const peer = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await peer.receive<{ port: number }>()
  const socket = net.connect({ port, host: '127.0.0.1', ...options })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  t.equal(transportOf(socket).transport, 'shm')
  return { socket, peer }
}

for (const noDelay of [false, true]) {
  t.test(`net.Socket with noDelay ${noDelay}: bytes in order, counted, and called back`, async t => {
    const { socket } = await pair(t, { noDelay })
    let echoed = ''
    socket.setEncoding('latin1').on('data', text => {
      echoed += text
    })
    let expected = ''
    let called = 0
    for (let i = 0; i < 500; i++) {
      const text = `${i} `.repeat(1 + (i % 7 === 0 ? 3000 : i % 5))
      expected += text
      socket.write(text, i % 2 === 0 ? 'latin1' : 'utf8', () => called++)
      if (i % 50 === 0) await new Promise(setImmediate)
    }
    await until('the echo', () => echoed.length === expected.length)
    t.ok(echoed === expected)
    t.equal(called, 500)
    t.equal(socket.bytesWritten, expected.length)
  })
}

t.test('a write that is cut off hears of it first, then its socket, as over TCP', async t => {
  const server = net.createServer(socket => {
    let received = 0
    socket.on('data', data => {
      received += data.length
      if (received > 3_000_000) socket.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1').resume()
  const log: string[] = []
  socket.write(Buffer.alloc(30_000_000), error => log.push(`callback ${error?.message}`))
  socket.on('error', error => log.push(error.message))
  await withWatchdog('the end', new Promise(resolve => socket.once('close', resolve)))
  t.same(log, ['callback write ECONNRESET', 'write ECONNRESET'])
})

t.test('process.exit() right after a small write: it arrives', async t => {
  const server = net.createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const connected = once(server, 'connection')
  const child = new Child(t, program('last-words'), [String(port)], relinked())
  const [socket] = (await withWatchdog('a connection', connected)) as [Socket]
  t.equal(transportOf(socket).transport, 'shm')
  let text = ''
  socket.setEncoding('utf8').on('data', words => {
    text += words
  })
  await withWatchdog('the end', once(socket, 'close'))
  t.equal(text, 'first, second; at exit')
  t.match(await child.exited, { code: 7 })
})

t.test('process.exit() after the callbacks of writes that filled the ring: all of it arrives', async t => {
  let bytes = 0
  let open = 0
  const server = net.createServer(socket => {
    open++
    socket.on('data', data => {
      bytes += data.length
    })
    socket.on('error', () => {}).on('close', () => open--)
  })
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const child = new Child(t, program('last-writes'), [String(port)], relinked())
  t.match(await child.exited, { code: 0 })
  await until('every connection has ended', () => open === 0)
  t.equal(bytes, 100 * 8 * 4096)
})
