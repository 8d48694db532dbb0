/** The same program, plain and relinked, sees the same events in the same order and the same bytes. */
import { once } from 'node:events'
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

/** Each is a scenario in programs/scenarios.ts. */
const SCENARIOS = [
  'echo strings in every encoding',
  'half-close: the answer comes after the end',
  'a connect before somebody listens is refused',
  'a server that closes before it accepts resets who has called',
  'end with data before connect',
  'destroy in the middle',
  'reset',
  'server refuses by maxConnections',
  'pause and resume',
  'setEncoding and a multi-byte character cut in two',
  'onread into one buffer',
  'paused on connect',
  'timeout',
  'cork and uncork',
  'addresses and ports agree',
  'keep-alive http',
  'tls over a connected socket',
  'http2',
  'exception in a listener',
  'asynchronous context',
  'tls.connect makes its own socket',
  'https',
  'a unix path',
  'an abstract unix name',
  'an answer to somebody who has gone',
  'an end comes before the answer to what it gave up',
  'several closed in one turn',
  'ticks and microtasks after each read into one buffer',
  'a write is over before the answer to it',
]

for (const [index, name] of SCENARIOS.entries()) {
  t.test(name, async t => {
    const logs: unknown[] = []
    for (const options of [{}, relinked()]) {
      const child = new Child(t, program('scenarios'), [String(index)], options)
      logs.push(await child.receive())
      await child.end()
    }
    const [plain, fast] = logs as { transport: string; log: string[] }[]
    t.equal(plain?.transport, 'tcp')
    t.not(fast?.transport, 'tcp', `relinked it goes by ${fast?.transport}`)
    t.ok((plain?.log.length ?? 0) > 0, 'something happened')
    t.same(fast?.log, plain?.log)
  })
}

t.test('256 MB each way at once between two processes, whole', { timeout: 120_000 }, async t => {
  const bytes = 256_000_000
  const server = new Child(t, program('mirror'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('mirror'), ['client', String(port), String(bytes)], relinked())
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
  const stopped = net.connect(port, '127.0.0.1')
  await once(stopped, 'connect')
  stopped.pause()
  for (let i = 0; i < 100; i++) stopped.write(Buffer.alloc(100_000))
  for (let i = 0; i < 20; i++) {
    const other = net.connect(port, '127.0.0.1')
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
