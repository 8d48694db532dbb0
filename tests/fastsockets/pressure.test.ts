/** Full rings, stopped peers and listeners that throw: nothing is lost, nothing overtakes, nothing spins. */
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import net, { type Socket, transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { withWatchdog } from '../support/until.ts'

const STOPPED_MS = 1000
/** A writer that can do nothing must not burn its core; some of it goes to this test's own turns. */
const CPU_SHARE_MAX = 0.2
const BANNER_BYTES = 16 << 20

t.test('a listener that throws loses neither the bytes after it nor the end', async t => {
  for (const mode of ['flowing', 'paused']) {
    const script = new Child(t, program('throwing'), [mode], relinked())
    const { received, thrown, ended } = await script.receive<Record<string, number | boolean>>()
    t.equal(received, 3_000_000, mode)
    t.ok(Number(thrown) > 0)
    t.equal(ended, true)
  }
})

t.test('a writer whose peer is stopped sleeps, and goes on when the peer does', async t => {
  const server = new Child(t, program('server'), ['sink'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  t.equal(transportOf(socket).transport, 'shm')
  let text = ''
  socket.on('data', data => {
    text += data
  })
  server.process.kill('SIGSTOP')
  // Many small messages fill the ring and use up the credits.
  const message = Buffer.alloc(64)
  const count = 50_000
  for (let i = 0; i < count; i++) socket.write(message)
  await sleep(200)
  const before = process.cpuUsage()
  await sleep(STOPPED_MS)
  const { user, system } = process.cpuUsage(before)
  t.ok(
    (user + system) / 1000 < STOPPED_MS * CPU_SHARE_MAX,
    `${(user + system) / 1000} ms of CPU in ${STOPPED_MS} ms`,
  )
  server.process.kill('SIGCONT')
  socket.end()
  await withWatchdog('the answer', once(socket, 'end'))
  t.match(JSON.parse(text), { bytes: count * message.length })
})

t.test('a new connection is not overtaken by its own first bytes while the ring is full', async t => {
  const server = new Child(t, program('banner'), [String(BANNER_BYTES)], relinked())
  const { port } = await server.receive<{ port: number }>()
  const errors: string[] = []
  const received: number[] = []
  const open = async (): Promise<Socket> => {
    const socket = net.connect(port, '127.0.0.1')
    const index = received.push(0) - 1
    socket.on('data', data => {
      received[index] = (received[index] as number) + data.length
    })
    socket.on('error', error => errors.push(String(error.cause ?? error)))
    await once(socket, 'connect')
    return socket
  }
  // Four greedy readers fill the ring again and again; this thread then stands still, so that it stays full.
  const sockets = [await open(), await open(), await open(), await open()]
  for (let i = 0; i < 10; i++) {
    const opening = open()
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
    sockets.push(await withWatchdog('a connection', opening))
  }
  await withWatchdog(
    'all banners',
    Promise.all(sockets.map(socket => (socket.closed ? undefined : once(socket, 'close')))),
  )
  t.same(errors, [])
  t.ok(
    received.every(bytes => bytes === BANNER_BYTES),
    `each has its banner: ${received}`,
  )
})

t.test('the primary of a cluster reaches its own workers', async t => {
  const primary = new Child(t, program('cluster'), [], relinked())
  t.match(await primary.receive(), { text: 'from a worker', transport: 'shm' })
})

t.test('a worker of a cluster reaches another process by the fast way', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const primary = new Child(t, program('cluster-client'), [String(port)], relinked())
  t.match(await primary.receive(), { text: 'hello', transport: 'shm' })
})
