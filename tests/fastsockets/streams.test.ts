/** The same program, plain and relinked, sees the same events in the same order and the same bytes. */
import { once } from 'node:events'
import t from 'tap'
import { Child } from '../support/child.ts'
import { clientSide, HOST } from '../support/placement.ts'
import { program, relinked } from '../support/relinked.ts'
import { startsFast } from '../support/start-mode.ts'

/** Each is a scenario in programs/scenarios.ts. */
const SCENARIOS: Readonly<Record<string, string>> = {
  encodings: 'echo strings in every encoding',
  halfClose: 'half-close: the answer comes after the end',
  connectBeforeListen: 'a connect before a server listens is refused',
  closedBeforeItAccepts: 'a server that closes before it accepts resets who has called',
  closedByAnImmediate: 'a client that called in time is accepted before an immediate closes the server',
  endBeforeConnect: 'end with data before connect',
  destroyInTheMiddle: 'destroy in the middle',
  reset: 'reset',
  maxConnections: 'server refuses by maxConnections',
  pauseAndResume: 'pause and resume',
  characterCutInTwo: 'setEncoding and a multi-byte character cut in two',
  onread: 'onread into one buffer',
  pausedOnConnect: 'paused on connect',
  timeout: 'timeout',
  cork: 'cork and uncork',
  addresses: 'addresses and ports agree',
  keepAliveHttp: 'keep-alive http',
  tlsOverSocket: 'tls over a connected socket',
  overHttp2: 'http2',
  exceptionInListener: 'exception in a listener',
  asynchronousContext: 'asynchronous context',
  tlsConnect: 'tls.connect makes its own socket',
  overHttps: 'https',
  unixPath: 'a unix path',
  abstractName: 'an abstract unix name',
  answerInVain: 'an answer to a client that has gone',
  endBeforeAnswer: 'an end comes before the answer to what it gave up',
  closedInOneTurn: 'several closed in one turn',
  onreadAndTicks: 'ticks and microtasks after each read into one buffer',
  writtenBeforeTheAnswer: 'a write is over before the answer to it',
}

for (const [scenario, name] of Object.entries(SCENARIOS)) {
  t.test(name, async t => {
    const logs: unknown[] = []
    for (const options of [{}, relinked()]) {
      const child = new Child(t, program('scenarios'), [scenario], options)
      logs.push(await child.receive())
      await child.end()
    }
    const [plain, fast] = logs as { transport: string; log: string[] }[]
    t.equal(plain?.transport, 'tcp')
    if (startsFast) t.not(fast?.transport, 'tcp', `relinked it goes by ${fast?.transport}`)
    t.ok((plain?.log.length ?? 0) > 0, 'something happened')
    t.same(fast?.log, plain?.log)
  })
}

t.test('every scenario of the program has a test', async t => {
  const { log } = await new Child(t, program('scenarios'), ['names']).receive<{ log: string[] }>()
  t.strictSame(log, Object.keys(SCENARIOS))
})

t.test('256 MB each way at once between two processes, whole', { timeout: 120_000 }, async t => {
  const bytes = 256_000_000
  const server = new Child(t, program('mirror'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(
    t,
    program('mirror'),
    ['client', String(port), String(bytes)],
    clientSide(relinked()),
  )
  const { transport, sent, received, sha256Sent, sha256Received } =
    await client.receive<Record<string, unknown>>()
  t.equal(transport, 'shm')
  t.equal(sent, bytes)
  t.equal(received, bytes)
  t.equal(sha256Received, sha256Sent)
})

t.test('a stopped reader stops only its own sender', async t => {
  const server = new Child(t, program('mirror'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const { default: net } = await import('../../fastsockets/index.ts')
  const stopped = net.connect(port, HOST)
  await once(stopped, 'connect')
  stopped.pause()
  // More than TCP and a stream hold together: in between it may move.
  for (let i = 0; i < 100; i++) stopped.write(Buffer.alloc(1_000_000))
  for (let i = 0; i < 20; i++) {
    const other = net.connect(port, HOST)
    other.end(Buffer.alloc(100_000, i))
    let received = 0
    other.on('data', data => {
      received += data.length
    })
    await once(other, 'close')
    t.equal(received, 100_000)
  }
  t.ok(stopped.writableLength > 0, 'the stopped one still waits')
  stopped.destroy()
})
