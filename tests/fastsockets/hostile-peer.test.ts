/** A peer that writes garbage in place of frames loses its own sockets only. */
import { once } from 'node:events'
import t from 'tap'
import { KIND_REPLY } from '../../am/message-layout.ts'
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import net, { type AddressInfo, type Socket, transportOf } from '../../fastsockets/index.ts'
import { SocketChannel } from '../../fastsockets/stream/socket-channel.ts'
import {
  ACCEPT,
  BOUND,
  CLOSE,
  CONNECT,
  CONSUMED,
  DATA,
  RD_COMPL,
  REFUSE,
  SINK_AVAIL,
  SRC_AVAIL,
  WR_COMPL,
} from '../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../fastsockets/stream/stream-sink.ts'
import { openLoopbackPair } from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { sendMessage } from '../support/messages.ts'
import { portWithFirstHashed } from '../support/ports.ts'
import { program, relinked } from '../support/relinked.ts'
import { until, withWatchdog } from '../support/until.ts'

t.test('garbage in the ring: ECONNRESET with the violation as cause, and the process goes on', async t => {
  const accepted: Socket[] = []
  const server = net.createServer(socket => {
    accepted.push(socket)
    socket.on('error', () => {})
    socket.on('data', data => socket.write(data))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of accepted) socket.destroy()
  })
  const port = String((server.address() as AddressInfo).port)

  const honest = new Child(t, program('client'), [port], relinked())
  t.match(await honest.receive(), { connected: 'shm' })
  const hostile = new Child(t, program('client'), [port, 'scribble'], relinked())
  t.match(await hostile.receive(), { connected: 'shm' })
  const [first, second] = await until('two connections', () => accepted.length === 2 && accepted)
  const failed = once(second as Socket, 'error')
  hostile.send({})
  const [error] = await withWatchdog('an error', failed)
  t.match(error, { code: 'ECONNRESET', errno: Number, syscall: 'read', message: 'read ECONNRESET' })
  t.match(error.cause, { message: /the peer broke the protocol: \S/ })
  t.comment(error.cause.message)

  // The hostile process learns of it as of any reset; the honest one learns nothing.
  const seen: unknown[] = []
  while (!seen.some(message => (message as { closed?: boolean }).closed)) seen.push(await hostile.receive())
  first?.write('are you there?')
  t.match(await honest.receive(), { data: 14 })
  const later = new Child(t, program('client'), [port], relinked())
  t.match(await later.receive(), { connected: 'shm' })
  t.equal(transportOf(first as Socket).transport, 'shm')
})

t.test('a reply for the handler of a request ends the channel', async t => {
  for (const handler of [CONNECT, DATA, CONSUMED, CLOSE, SRC_AVAIL, RD_COMPL, SINK_AVAIL, WR_COMPL, BOUND]) {
    const [end, hostile] = openLoopbackPair()
    const channel = new SocketChannel(
      end,
      'hostile',
      () => REFUSAL.NOT_LISTENING,
      () => {},
    )
    let cause: Error | undefined
    channel.handleBroken = error => {
      cause = error
      SocketChannel.prototype.handleBroken.call(channel, error)
    }
    // The CONNECT has slot 0, and is the request that the hostile peer replies to.
    channel.connect({ handleRefused() {} } as unknown as StreamSink, 80, '127.0.0.1', 4)
    const words = [1, 80, 1000, 4]
    sendMessage(hostile, { kind: KIND_REPLY, handler, slot: 0, words, payload: Buffer.from('127.0.0.1') })
    channel.pollNow(10)
    t.match(cause?.message, new RegExp(`handler ${handler}( by a reply|, which is not there)`))
    t.notOk(channel.isOpen)
    hostile.close()
  }
})

t.test('a request for the handler of a reply costs the peer its own sockets only', async t => {
  for (const handler of [ACCEPT, REFUSE]) {
    const server = net.createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const accepted = once(server, 'connection')
    const hostile = new Child(t, program('client'), [String(port), 'cross'], relinked())
    t.match(await hostile.receive(), { connected: 'shm' })
    const [socket] = (await withWatchdog('a connection', accepted)) as [Socket]
    socket.write('?')
    t.match(await hostile.receive(), { data: 1 })
    const failed = once(socket, 'error')
    hostile.send({ handler })
    const [error] = await withWatchdog('an error', failed)
    t.equal(error.code, 'ECONNRESET')
    t.match(error.cause?.message, `handler ${handler} by a request`)
    server.close()
    await hostile.kill()
  }
})

t.test('a thousand random greetings and hellos are hung up on, and the listener goes on', async t => {
  const { greetingOf } = await import('../support/greeting.ts')
  const { hashedPort } = await import('../../fastsockets/bootstrap/hashed-port.ts')
  const { randomBytes } = await import('node:crypto')
  const port = await portWithFirstHashed()
  const server = new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked())
  await server.receive()
  for (let i = 0; i < 1000; i++) {
    const stranger = net.connect({ port: hashedPort(port, 0), host: '127.0.0.1', localAddress: '127.0.0.1' })
    stranger.on('error', () => {})
    stranger.resume()
    // Every other one begins as a HELLO should.
    const noise = randomBytes(1 + (i % 100))
    if (i % 2 === 0) Buffer.from('FSHELLO\0').copy(noise)
    stranger.end(noise)
    await once(stranger, 'close')
  }
  const greeted = await greetingOf('127.0.0.1', port, 4)
  t.ok('connection' in greeted)
  if ('connection' in greeted) greeted.connection.destroy()
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  t.equal(transportOf(socket).transport, 'shm')
  socket.destroy()
})
