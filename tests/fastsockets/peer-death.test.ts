/** What happens when one of the two processes is killed, or ends, in the middle of things. */
import { once } from 'node:events'
import t from 'tap'
import net, { type AddressInfo, type Transport, transportOf } from '../../fastsockets/index.ts'
import { CHANNEL_CREDITS as CREDITS } from '../../fastsockets/stream/stream-layout.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { descriptorCount, memfdMappingCount } from '../support/resources.ts'
import { until, withWatchdog } from '../support/until.ts'

/** The promise: so long after the kill at the latest, the other side knows. */
const NOTICE_MAX_MS = 50
/** How many must keep it to the letter; the rest may be late only as far as the death itself was told late. */
const PROMPT_SHARE_MIN = 0.2
const KILLS = Number(process.env.FASTSOCKETS_KILLS || 1000)
const AT_ONCE = 4
/** A machine with other work may delay any one of them; most must be in time. */
const LATE_SHARE_MAX = 0.05

// A thousand processes: on a busy machine they take longer than the other files may.
t.setTimeout(600_000)

t.test('a server killed while it writes: what came is a prefix of what it wrote, then the end', async t => {
  const server = new Child(t, program('server'), ['flood'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const socket = net.connect(port, '127.0.0.1')
  const errors: string[] = []
  socket.on('error', error => errors.push((error as NodeJS.ErrnoException).code ?? ''))
  let position = 0
  let wrongAt = -1
  socket.on('data', data => {
    for (let i = 0; i < data.length && wrongAt < 0; i++) {
      if (data[i] !== (position + i) % 251) wrongAt = position + i
    }
    position += data.length
  })
  await until('a few megabytes', () => position > 5_000_000)
  t.equal(transportOf(socket).transport, 'shm')
  server.process.kill('SIGKILL')
  await withWatchdog('the end of the socket', once(socket, 'close'))
  t.equal(wrongAt, -1, 'every byte is in its place')
  t.ok(
    errors.every(code => code === 'ECONNRESET'),
    `errors as with TCP: ${errors}`,
  )
})

t.test(
  'behind many messages to a peer that is stopped an end is out at once, as over TCP; the rest comes when it dies',
  async t => {
    const server = new Child(t, program('server'), ['echo'], relinked())
    const { port } = await server.receive<{ port: number }>()
    const busy = net.connect({ port, host: '127.0.0.1', noDelay: true })
    const ending = net.connect({ port, host: '127.0.0.1' })
    await Promise.all([once(busy, 'connect'), once(ending, 'connect')])
    t.equal(transportOf(ending).transport, 'shm')
    server.process.kill('SIGSTOP')
    busy.on('error', () => {})
    for (let i = 0; i < CREDITS + 100; i++) busy.write('x')
    const events: string[] = []
    for (const event of ['finish', 'end', 'close']) ending.on(event, () => events.push(event))
    ending.resume().end()
    await until('the end to be out', () => events.length > 0)
    t.strictSame(events, ['finish'])
    server.process.kill('SIGKILL')
    await withWatchdog('the end of the socket', once(ending, 'close'))
    t.strictSame(events, ['finish', 'end', 'close'])
  },
)

t.test('a client killed while it writes: the server sees the end or a reset', async t => {
  let bytes = 0
  const ends: string[] = []
  const server = net.createServer(socket => {
    socket.on('data', data => {
      bytes += data.length
    })
    socket.on('end', () => ends.push('end'))
    socket.on('error', error => ends.push((error as NodeJS.ErrnoException).code ?? ''))
    socket.on('close', () => ends.push('close'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  const client = new Child(t, program('client'), [String(port), 'flood'], relinked())
  t.match(await client.receive(), { connected: 'shm' })
  await until('a few megabytes', () => bytes > 5_000_000)
  client.process.kill('SIGKILL')
  await until('the end of the connection', () => ends.includes('close'))
  t.match(ends[0] ?? '', /^(end|ECONNRESET)$/)
})

t.test('a writer whose reader is killed gets an error, not silence', async t => {
  const server = new Child(t, program('server'), ['hold'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  while (socket.write(Buffer.alloc(100_000)));
  const failed = once(socket, 'error')
  await server.kill()
  const [error] = await withWatchdog('an error', failed)
  t.match(error, { code: /^(ECONNRESET|EPIPE)$/, syscall: /^(read|write)$/, errno: Number })
})

t.test('what a process wrote before it left is delivered, then the end', async t => {
  const server = new Child(t, program('server'), ['write-and-exit'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const socket = net.connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', data => {
    text += data
  })
  await withWatchdog('the end', once(socket, 'end'))
  t.equal(text, 'last words')
  t.equal(transportOf(socket).transport, 'shm')
})

t.test('a client can come back after its server was killed and started again', async t => {
  const first = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await first.receive<{ port: number }>()
  const before = net.connect(port, '127.0.0.1')
  await once(before, 'connect')
  before.resume()
  before.on('error', () => {})
  const closed = once(before, 'close')
  await first.kill()
  await closed
  const second = new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked())
  await second.receive()
  const after = net.connect(port, '127.0.0.1')
  await once(after, 'connect')
  t.equal(transportOf(after).transport, 'shm')
  after.destroy()
})

t.test(`${KILLS} killed clients leave nothing behind`, { timeout: 600_000 }, async t => {
  const waiting = new Map<number, (atMs: number) => void>()
  let accepted = 0
  const server = net.createServer(socket => {
    accepted++
    const port = socket.remotePort as number
    socket.resume()
    socket.on('error', () => {})
    socket.on('close', () => waiting.get(port)?.(performance.now()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  /** After the kernel has reported the death. */
  const latenessMs: number[] = []
  let prompt = 0

  async function killOne(): Promise<void> {
    const client = new Child(t, program('doomed'), [String(port)], relinked())
    const { localPort, transport, reason } = await client.receive<Transport & { localPort: number }>()
    // On an overloaded machine our greeting may come too late; then it is TCP, rightly, and proves nothing here.
    if (reason?.code === 'SILENT') {
      await client.kill()
      return killOne()
    }
    if (transport !== 'shm') throw new Error(`the client was on ${transport}: ${reason?.code}`)
    const noticed = new Promise<number>(resolve => waiting.set(localPort, resolve))
    const exited = once(client.process, 'exit').then(() => performance.now())
    const killedMs = performance.now()
    await client.kill()
    const noticedMs = await withWatchdog('the close', noticed)
    latenessMs.push(noticedMs - (await exited))
    if (noticedMs - killedMs <= NOTICE_MAX_MS) prompt++
    waiting.delete(localPort)
  }

  async function killMany(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await killOne()
  }

  await killMany(1)
  const descriptors = descriptorCount()
  await Promise.all(Array.from({ length: AT_ONCE }, () => killMany(KILLS / AT_ONCE)))
  await until('the descriptors to go', () => descriptorCount() <= descriptors)
  t.equal(memfdMappingCount(), 0, 'no shared mapping is left')
  t.ok(accepted > KILLS)
  const late = latenessMs.filter(ms => ms > NOTICE_MAX_MS).length
  t.ok(late <= KILLS * LATE_SHARE_MAX, `noticed within ${NOTICE_MAX_MS} ms of the death: all but ${late}`)
  t.ok(prompt >= KILLS * PROMPT_SHARE_MIN, `noticed within ${NOTICE_MAX_MS} ms of the kill: ${prompt}`)
})
