/** Worker threads of a relinked program are fast, with all peers, and may be stopped at any moment. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import net, { type AddressInfo, transportOf } from '../../fastsockets/index.ts'
import { FETCH_MAX } from '../../fastsockets/stream/stream-layout.ts'
import { THRESHOLD_MIN, THRESHOLD_VARIABLE } from '../../fastsockets/stream/zcopy/threshold.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { isPatterned } from '../support/pattern.ts'
import { seededRandom } from '../support/random.ts'
import { program, relinked } from '../support/relinked.ts'
import { until, withWatchdog } from '../support/until.ts'

const WORKERS = 50
/** As in programs/workers.ts. */
const CHUNK = 1_000_000
const OFFERED = 40 * CHUNK
const CELL = new Int32Array(new SharedArrayBuffer(4))
/** On an overloaded machine our greeting may come too late; then it is TCP, rightly. */
const TOO_LATE = 'tcp SILENT'
const ATTEMPTS = 5

t.test('a worker, the main thread and another process talk with each other by shared memory', async t => {
  const server = net.createServer(socket => socket.pipe(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port: other } = server.address() as AddressInfo

  const talk = async (): Promise<object> => {
    const child = new Child(t, program('workers'), ['talk'], relinked())
    const { worker } = await child.receive<{ worker: number }>()
    const socket = net.connect(worker, '127.0.0.1')
    socket.end('hello')
    const [data] = await once(socket, 'data')
    t.equal(String(data), 'hello')
    const { transport, reason } = transportOf(socket)
    return { fromHere: reason ? `${transport} ${reason.code}` : transport, ...(await child.ask({ other })) }
  }

  let report = await talk()
  for (let i = 1; i < ATTEMPTS && JSON.stringify(report).includes(TOO_LATE); i++) report = await talk()
  t.strictSame(report, {
    fromHere: 'shm',
    fromWorker: { main: 'shm', worker: 'shm', other: 'shm' },
    fromMain: { worker: 'shm', other: 'shm' },
  })
})

t.test(`${WORKERS} workers terminated while they stream leave nothing behind`, async t => {
  const seed = String(seededRandom(t).seed)
  const child = new Child(t, program('workers'), ['terminate', seed], relinked())
  for (let i = 1; i <= WORKERS; i++) t.strictSame(await child.receive(), { terminated: i })
  const { wires, ...left } = await child.receive<{ wires: Record<string, number> }>()
  t.strictSame(left, { descriptors: 0, mappings: 0 })
  t.ok((wires.shm ?? 0) > WORKERS / 2, JSON.stringify(wires))
  t.strictSame(
    Object.keys(wires).filter(wire => wire !== 'shm' && wire !== TOO_LATE),
    [],
  )
  t.match(await child.end(), { code: 0, signal: null })
})

t.test('a worker terminated while it writes: the other process sees the end or a reset', async t => {
  const child = new Child(t, program('workers'), ['serve'], relinked())
  const { port } = await child.receive<{ port: number }>()
  const socket = net.connect(port, '127.0.0.1')
  let bytes = 0
  const ends: string[] = []
  socket.on('data', data => {
    bytes += data.length
  })
  socket.on('end', () => ends.push('end'))
  socket.on('error', error => ends.push((error as NodeJS.ErrnoException).code ?? ''))
  const closed = once(socket, 'close')
  await until('a few megabytes', () => bytes > 5_000_000)
  t.equal(transportOf(socket).transport, 'shm')
  t.strictSame(await child.ask({}), { terminated: true, mappings: 0 })
  await withWatchdog('the end of the socket', closed)
  t.match(ends[0] ?? '', /^(end|ECONNRESET)$/)
})

t.test(
  'a worker terminated with large writes on offer: a prefix, and nothing that its memory is used for next',
  async t => {
    const file = join(t.testdir(), 'terminated')
    // Both sides must ask for it.
    process.env[THRESHOLD_VARIABLE] = String(THRESHOLD_MIN)
    t.teardown(() => delete process.env[THRESHOLD_VARIABLE])
    const env = { ...plainEnvironment(), [THRESHOLD_VARIABLE]: String(THRESHOLD_MIN) }
    const child = new Child(t, program('workers'), ['offer'], relinked({ env }))
    const { port } = await child.receive<{ port: number }>()
    const socket = net.connect(port, '127.0.0.1')
    let received = 0
    let wrongAt = -1
    let goneMs = 0
    socket.on('error', () => {})
    socket.on('data', data => {
      if (wrongAt < 0 && !isPatterned(data, received)) wrongAt = received
      received += data.length
      // In the middle of an offer.
      if (goneMs > 0 || received < OFFERED / 4 || received % CHUNK !== FETCH_MAX) return
      child.send({ file })
      // This thread hears of nothing meanwhile.
      while (!existsSync(file)) Atomics.wait(CELL, 0, 0, 5)
      goneMs = performance.now()
    })
    await withWatchdog('the end of the socket', once(socket, 'close'))
    t.ok(goneMs > 0, 'it was terminated in the middle')
    t.comment(`heard of after ${performance.now() - goneMs} ms, with ${received} bytes`)
    t.equal(wrongAt, -1, 'nothing came that was not written')
    t.ok(received < OFFERED)
    t.ok((transportOf(socket).counts?.zcopyBytesIn ?? 1) > 0)
  },
)

t.test('what a worker wrote before it ended, also while it ended, is delivered', async t => {
  const child = new Child(t, program('workers'), ['exit'], relinked())
  t.strictSame(await child.receive(), {
    code: 3,
    text: 'words and last words',
    wire: 'shm',
    mappings: 0,
  })
})

t.test('a worker made with `eval: true`: Node runs --require there, and not --import', async t => {
  const args = [new URL('../../fastsockets/index.js', import.meta.url).href]
  const required = fileURLToPath(new URL('../../fastsockets/register.cjs', import.meta.url))
  const byRequire = new Child(t, program('eval-worker'), args, { execArgv: ['--require', required] })
  t.strictSame(await byRequire.receive(), { transport: 'shm' })
  const byImport = new Child(t, program('eval-worker'), args, relinked())
  t.match(await byImport.receive(), {
    transport: 'tcp',
    reason: { code: 'NOT_INSTALLED', text: /eval: true.*--require/ },
  })
})
