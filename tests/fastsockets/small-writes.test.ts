/** A small write leaves at once, whether or not `setNoDelay(true)` was said; the receiver joins small messages of one turn. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import net, { type AddressInfo, type Socket, transportOf } from '../../fastsockets/index.ts'
import { DATA, SEGMENT_MAX } from '../../fastsockets/stream/stream-layout.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { SocketLiar } from '../support/socket-liar.ts'
import { until, withWatchdog } from '../support/until.ts'

const heard = (liar: SocketLiar): string[] =>
  liar.said.filter(({ handler }) => handler === DATA).map(({ payload }) => payload.toString())

t.test('a write is in the ring when it returns, each as one message', async t => {
  const liar = new SocketLiar(t)
  await liar.connect()
  for (const word of ['one ', 'and ', 'two']) {
    t.ok(liar.stream.write([Buffer.from(word)]))
    t.equal(liar.stream.unsentLength, 0)
  }
  await until('the words', () => heard(liar).length === 3)
  t.same(heard(liar), ['one ', 'and ', 'two'])
})

t.test('small messages of one turn become one chunk', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  let sequence = 0
  for (const word of ['one ', 'and ', 'two']) {
    liar.say(DATA, [to, sequence, 0, 0], Buffer.from(word))
    sequence += word.length
  }
  await until('the words', () => liar.received.length > 0)
  t.same(liar.received.map(String), ['one and two'])
})

t.test('64 KiB in the frames of native code leave as one message, others as two', async t => {
  const framed = [Buffer.alloc(SEGMENT_MAX), Buffer.alloc(100)]
  for (const [isFramed, count] of [[true, 1] as const, [false, 2] as const]) {
    const liar = new SocketLiar(t)
    await liar.connect()
    t.ok(liar.stream.write(framed, isFramed))
    await until('all of it', () => heard(liar).join('').length === SEGMENT_MAX + 100)
    t.equal(heard(liar).length, count)
  }
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
