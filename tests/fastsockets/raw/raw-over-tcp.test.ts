/** Raw sockets over TCP: the end behind the last bytes, and programs that have no C library. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { connect, listen, type RawSocket } from '../../../fastsockets/raw/index.ts'
import { Child } from '../../support/child.ts'
import { program } from '../../support/relinked.ts'
import { until, withWatchdog } from '../../support/until.ts'

const GREETING = 'hello'
/** In which Node takes in what the kernel has. */
const TURNS = 10
/** For Fast Sockets it is a platform on which there is no C library to call. */
const DISGUISE = 'data:text/javascript,Object.defineProperty(process,"platform",{value:"plan9"})'

interface Pair {
  readonly plain: net.Socket
  readonly raw: RawSocket
}

/** A raw client of a server that is not relinked. */
async function connected(t: Test): Promise<Pair> {
  const server = net.createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const [[plain], raw] = await Promise.all([
    once(server, 'connection') as Promise<[net.Socket]>,
    connect({ port, host: '127.0.0.1' }),
  ])
  t.teardown(() => void server.close())
  return { plain, raw }
}

/** A raw server's end of a connection from a client that is not relinked. */
async function accepted(t: Test): Promise<Pair> {
  const server = await listen({ host: '127.0.0.1' })
  t.teardown(() => server.close())
  const { port } = server.address
  const plain = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  return { plain, raw: await server.accept() }
}

async function receiveAll(socket: RawSocket, size: number): Promise<Buffer> {
  const parts: Buffer[] = []
  const buffer = Buffer.alloc(size)
  for (;;) {
    const length = await withWatchdog('bytes, or the end', socket.recv(buffer))
    if (length === 0) return Buffer.concat(parts)
    parts.push(Buffer.from(buffer.subarray(0, length)))
  }
}

for (const makePair of [connected, accepted]) {
  for (const size of [1, GREETING.length, 100]) {
    t.test(`${makePair.name}: an end that came before the first receive of ${size} bytes`, async t => {
      const { plain, raw } = await makePair(t)
      t.teardown(() => {
        plain.destroy()
        raw.close()
      })
      t.equal(raw.transport.transport, 'tcp')
      plain.end(GREETING)
      await once(plain, 'finish')
      await until('the bytes', () => raw.transport.bytesIn === GREETING.length)
      for (let i = 0; i < TURNS; i++) await nextTurn()
      t.equal(String(await receiveAll(raw, size)), GREETING)
      t.equal(await raw.recv(Buffer.alloc(size)), 0, 'the end stays the end')
      t.equal(await raw.send(Buffer.from('still open')), 10, 'the other direction is not ended')
    })
  }
}

async function withoutLibrary(t: Test, behaviour: string): Promise<{ server: Child; socket: RawSocket }> {
  const server = new Child(t, program('raw-server'), [behaviour], { execArgv: ['--import', DISGUISE] })
  const { port } = await server.receive<{ port: number }>()
  const socket = await connect({ port, host: '127.0.0.1' })
  t.teardown(() => socket.close())
  t.match(socket.transport, { transport: 'tcp', reason: { code: 'NOT_RELINKED' } })
  t.strictSame(await server.receive(), { accepted: 'tcp' })
  return { server, socket }
}

t.test('without the C library trySend sends all the same, and the bytes may be reused at once', async t => {
  const { socket } = await withoutLibrary(t, 'echo-trying')
  const sent = randomBytes(3_000_000)
  const sending = socket.send(sent)
  socket.shutdown()
  const received = await receiveAll(socket, 100_000)
  t.equal(await sending, sent.length)
  t.ok(received.equals(sent))
})

t.test(
  'without the C library what trySend has taken arrives, though the socket is closed at once',
  async t => {
    const { server, socket } = await withoutLibrary(t, 'last-words')
    const { sent } = await server.receive<{ sent: number }>()
    t.ok(sent > 0)
    t.equal((await receiveAll(socket, 100_000)).length, sent)
  },
)
