/** ZCopy: large writes are fetched from the writer's memory; only the counters show it. */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import net, { type Socket, transportOf } from '../../../../fastsockets/index.ts'
import { connect, listen } from '../../../../fastsockets/raw/index.ts'
import { THRESHOLD_MIN, THRESHOLD_VARIABLE } from '../../../../fastsockets/stream/zcopy/threshold.ts'
import { Child } from '../../../support/child.ts'
import { isPatterned, patterned } from '../../../support/pattern.ts'
import { program, relinked } from '../../../support/relinked.ts'
import { eventually, withWatchdog } from '../../../support/until.ts'
import { report, reportWhen } from '../../../support/zcopy-reports.ts'

// Here and, by the environment, in the peers.
process.env[THRESHOLD_VARIABLE] = String(THRESHOLD_MIN)
const LARGE = 5_000_000
const WINDOW = 768 * 1024

async function connectedPeer(t: Test): Promise<{ peer: Child; socket: Socket }> {
  const peer = new Child(t, program('zcopy-peer'), [], relinked())
  const { port } = await peer.receive<{ port: number }>()
  const socket = net.connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  t.equal(transportOf(socket).transport, 'shm')
  return { peer, socket }
}

t.test('large writes of many sizes among small ones, both ways at once, whole', async t => {
  const { peer, socket } = await connectedPeer(t)
  let sent = 0
  let received = 0
  let isIntact = true
  socket.on('data', data => {
    isIntact &&= isPatterned(data, received)
    received += data.length
  })
  for (let round = 0; round < 12; round++) {
    for (const length of [100, LARGE, 1, THRESHOLD_MIN - 1, THRESHOLD_MIN, 70_000 + round, 3 * WINDOW]) {
      socket.write(patterned(sent, length))
      sent += length
      peer.send({ write: length })
    }
  }
  const { isIntact: isTheirs, counts } = await reportWhen(
    peer,
    'all bytes',
    ({ received }) => received === sent,
  )
  await eventually('all bytes back', () => received === sent)
  t.ok(isIntact, 'what came is what was sent')
  t.ok(isTheirs, 'and there, too')
  t.ok((counts?.zcopyBytesIn ?? 0) > sent / 2, `${counts?.zcopyBytesIn} of ${sent} fetched there`)
  t.ok((counts?.zcopyBytesOut ?? 0) > sent / 2)
  t.ok((transportOf(socket).counts?.zcopyBytesIn ?? 0) > sent / 2)
})

t.test('corked chunks go in one write, some copied and some fetched', async t => {
  const { peer, socket } = await connectedPeer(t)
  let sent = 0
  socket.cork()
  for (const length of [10, 400_000, 0, 10, 400_000, 5]) {
    socket.write(patterned(sent, length))
    sent += length
  }
  socket.uncork()
  const { isIntact, counts } = await reportWhen(peer, 'all bytes', ({ received }) => received === sent)
  t.ok(isIntact)
  t.equal(counts?.zcopyBytesIn, 800_000, 'the large ones are fetched whole, the small ones are copied')
})

t.test('a peer that does not read has the data copied into its receive buffer, as ever', async t => {
  const { peer, socket } = await connectedPeer(t)
  peer.send({ pause: 1 })
  await reportWhen(peer, 'the pause', ({ paused }) => paused)
  // It fits into the window: the write completes although the peer does not read.
  const written = new Promise(resolve => socket.write(patterned(0, 500_000), resolve))
  await withWatchdog('the end of the write', written)
  let isOver = false
  socket.write(patterned(500_000, LARGE), () => {
    isOver = true
  })
  await delay(50)
  t.notOk(isOver, 'no memory but the window')
  t.equal((await report(peer)).received, 0)
  peer.send({ resume: 1 })
  const { isIntact, counts } = await reportWhen(peer, 'all', ({ received }) => received === LARGE + 500_000)
  t.ok(isIntact)
  t.ok((counts?.bytesBuffered ?? 0) >= 500_000)
  await eventually('the end of the write', () => isOver)
})

t.test('nor does it keep a writer waiting if something lies in its receive buffer already', async t => {
  const { peer, socket } = await connectedPeer(t)
  peer.send({ pause: 1 })
  await reportWhen(peer, 'the pause', ({ paused }) => paused)
  let sent = 0
  // The first fills what the paused socket takes, the second is left behind it.
  for (const length of [100_000, 100, 500_000]) {
    const written = new Promise(resolve => socket.write(patterned(sent, length), resolve))
    await withWatchdog(`a write of ${length} bytes`, written)
    sent += length
  }
  peer.send({ resume: 1 })
  t.ok((await reportWhen(peer, 'all', ({ received }) => received === sent)).isIntact)
})

t.test('a reader that pauses in the middle of a large write gets the rest when it goes on', async t => {
  const { peer, socket } = await connectedPeer(t)
  let received = 0
  let isIntact = true
  let pauses = 0
  socket.on('data', data => {
    isIntact &&= isPatterned(data, received)
    received += data.length
    if (pauses++ % 3 !== 0) return
    socket.pause()
    setTimeout(() => socket.resume(), 1)
  })
  for (let i = 0; i < 4; i++) peer.send({ write: LARGE })
  await eventually('all bytes', () => received === 4 * LARGE)
  t.ok(isIntact)
  t.ok((await report(peer)).isWritten)
})

t.test('both write before they read: neither waits for ever', async t => {
  const { peer, socket } = await connectedPeer(t)
  peer.send({ pause: 1 })
  socket.pause()
  await reportWhen(peer, 'the pause', ({ paused }) => paused)
  peer.send({ write: 600_000 })
  const written = new Promise(resolve => socket.write(patterned(0, 600_000), resolve))
  await withWatchdog('the end of this write', written)
  await reportWhen(peer, 'the end of that write', ({ isWritten }) => isWritten)
  peer.send({ resume: 1 })
  t.ok((await reportWhen(peer, 'all bytes', ({ received }) => received === 600_000)).isIntact)
})

t.test('a writer that destroys its socket: what came is a prefix, and the reader hears of it', async t => {
  const { peer, socket } = await connectedPeer(t)
  let error: Error | null | undefined
  socket.write(patterned(0, 4 * LARGE), failure => {
    error = failure
  })
  await reportWhen(peer, 'the first bytes', ({ received }) => received > 0)
  socket.destroy()
  const { isIntact, ended } = await reportWhen(peer, 'the end', ({ ended }) => ended !== undefined)
  t.ok(isIntact)
  t.comment(`heard of as ${ended}`)
  await eventually('the write to be given up', () => error !== undefined)
})

t.test('a reader that destroys its socket: the write fails', async t => {
  const { peer, socket } = await connectedPeer(t)
  peer.send({ pause: 1 })
  await reportWhen(peer, 'the pause', ({ paused }) => paused)
  const failed = once(socket, 'error')
  socket.write(patterned(0, 4 * LARGE))
  peer.send({ destroy: 1 })
  const [error] = await withWatchdog('an error', failed)
  t.match((error as NodeJS.ErrnoException).code, /^(ECONNRESET|EPIPE)$/)
})

t.test('a writer that is killed in the middle: a prefix, then the end', async t => {
  const { peer, socket } = await connectedPeer(t)
  let received = 0
  let isIntact = true
  const over = once(socket, 'close')
  socket.on('error', () => {})
  socket.on('data', data => {
    isIntact &&= isPatterned(data, received)
    received += data.length
    if (received > LARGE) peer.process.kill('SIGKILL')
  })
  for (let i = 0; i < 40; i++) peer.send({ write: LARGE })
  await withWatchdog('the end', over)
  t.ok(isIntact)
  t.ok(received > LARGE && received < 40 * LARGE, `${received} bytes came`)
})

t.test('a raw socket: straight into the buffer of its recv', async t => {
  const peer = new Child(t, program('zcopy-peer'), [], relinked())
  const { port } = await peer.receive<{ port: number }>()
  const socket = await connect({ host: '127.0.0.1', port })
  t.teardown(() => socket.close())
  const into = Buffer.alloc(700_000)
  await socket.send(patterned(0, LARGE))
  t.ok((await reportWhen(peer, 'all bytes', ({ received }) => received === LARGE)).isIntact)
  peer.send({ write: LARGE })
  let received = 0
  while (received < LARGE) {
    const length = await socket.recv(into)
    if (!isPatterned(into.subarray(0, length), received)) return t.fail(`wrong bytes after ${received}`)
    received += length
  }
  const { counts, isWritten } = await reportWhen(peer, 'the end of the write', ({ isWritten }) => isWritten)
  t.ok(isWritten)
  t.ok((counts?.zcopyBytesOut ?? 0) > LARGE / 2, `${counts?.zcopyBytesOut} bytes fetched`)
})

t.test('raw sockets both: after the first offer, the sender writes into the posted receives', async t => {
  const server = await listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.address
  new Child(t, program('zcopy-raw-writer'), [String(port), String(LARGE)], relinked())
  const socket = await server.accept()
  t.teardown(async () => {
    socket.close()
    await server.close()
  })
  let received = 0
  let isIntact = true
  // Two buffers in turn, always one of them posted; of a size that does not divide what is sent.
  const buffers = [Buffer.alloc(900_001), Buffer.alloc(900_001)]
  let next = socket.recv(buffers[0] as Buffer)
  for (let i = 1; received < 10 * LARGE; i++) {
    const length = await next
    const filled = buffers[(i - 1) % 2] as Buffer
    next = socket.recv(buffers[i % 2] as Buffer)
    isIntact &&= isPatterned(filled.subarray(0, length), received)
    received += length
  }
  t.ok(isIntact)
  t.equal(await next, 0, 'the end')
  const fetched = socket.transport.counts?.zcopyBytesIn ?? 0
  t.ok(fetched > 9 * LARGE, `${fetched} bytes without a ring`)
})
