/** TLS and http2 start on TCP, and change their wire below while they are in use. */
import { once } from 'node:events'
import http2 from 'node:http2'
import net from 'node:net'
import t, { type Test } from 'tap'
import { HELLO_MAGIC } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { earlyPortOf } from '../../support/greeting.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Seen } from '../programs/native-starts.ts'

const COUNT = 150

async function start(t: Test, ablate: string, isServerPlain = false): Promise<Child> {
  const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: ablate }
  const serverEnv = isServerPlain ? { ...env, FASTSOCKETS_DISABLE: '1' } : env
  const options = relinked({ env: serverEnv })
  const server = new Child(t, program('native-starts'), ['server'], options)
  const ports = await server.receive<object>()
  const client = new Child(t, program('native-starts'), ['client', JSON.stringify(ports)], relinked({ env }))
  await client.receive()
  return client
}

/** A connection of the first ones is made on our handle at once; of the others their server is known by then. */
const FIRST = ['tls', 'https', 'http2', 'h2c', 'tls over an accepted socket', 'h2c over an accepted socket']

t.test('native code becomes fast in mid-stream', async t => {
  const client = await start(t, 'price=60,no-direct')
  for (const run of [
    ...FIRST,
    'tls over a connected socket',
    'http2 over a connected socket',
    'h2c over a connected socket',
  ]) {
    const { isRight, seen } = await client.ask<Seen>({ run, count: COUNT })
    t.ok(isRight, `${run}: every answer is right`)
    t.equal(seen[0], 'tcp tcp', `${run}: at first it is on TCP`)
    t.equal(seen.at(-1), 'shm shm', `${run}: at last it is not: ${seen}`)
  }
  const before = readStatusOf(client.pid)[0]?.promoted ?? 0
  t.match(await client.ask<Seen>({ run: 'grpc', count: COUNT }), { isRight: true })
  t.equal(readStatusOf(client.pid)[0]?.promoted, before + 1, 'so does gRPC')
})

t.test('their next connections are fast at once', async t => {
  const client = await start(t, 'price=60')
  for (const run of ['tls', 'https', 'http2', 'h2c']) {
    await client.ask<Seen>({ run, count: COUNT })
    const next = await client.ask<Seen>({ run, count: 3 })
    t.strictSame(next, { isRight: true, seen: ['shm shm'] }, run)
  }
})

t.test('to a server that is not relinked', async t => {
  const client = await start(t, 'price=0', true)
  for (const run of [
    'tls',
    'https',
    'http2',
    'h2c',
    'tls over a connected socket',
    'h2c over a connected socket',
  ])
    for (let i = 0; i < 2; i++)
      t.match(await client.ask<Seen>({ run, count: COUNT }), { isRight: true, seen: [/^tcp /] }, run)
})

/** A program in its first phase loads the rest when a client asks for its greeting. */
async function load(port: number): Promise<void> {
  const caller = net.connect(await earlyPortOf(port), '127.0.0.1')
  caller.once('data', () => caller.write(HELLO_MAGIC))
  await once(caller, 'close')
}

t.test('native code that began before anything was loaded becomes fast', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const options = relinked({ env })
  const server = new Child(t, program('native-starts'), ['server'], options)
  const ports = await server.receive<Record<string, number>>()
  const client = new Child(t, program('native-starts'), ['client', JSON.stringify(ports)], options)
  const clientPort = await client.receive<number>()
  const runs = ['tls over a connected socket', 'http2 over a connected socket', 'h2c over a connected socket']
  const ask = async (run: string, count: number): Promise<Seen> =>
    await client.ask({ run, count, keeps: true })
  for (const run of runs) t.strictSame(await ask(run, 10), { isRight: true, seen: ['tcp tcp'] }, run)
  t.match(await ask('grpc', 10), { isRight: true })
  t.strictSame([readStatusOf(client.pid)[0]?.isLoaded, readStatusOf(server.pid)[0]?.isLoaded], [false, false])
  await load(clientPort)
  await load(ports.h2c as number)
  for (const run of runs) {
    const { isRight, seen } = await ask(run, COUNT)
    t.strictSame([isRight, seen.at(-1)], [true, 'shm shm'], `${run}: ${seen}`)
  }
  await eventually('the move of gRPC', async () => {
    t.match(await ask('grpc', 50), { isRight: true })
    return readStatusOf(client.pid)[0]?.promoted === runs.length + 1
  })
  await client.kill()
})

interface Counted {
  readonly writes: number
  readonly ticks: number
}

/** How often a server that has loaded nothing has written, and run ticks, for 64 requests that came together. */
async function sendTogether(t: Test, ...args: readonly string[]): Promise<Counted> {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const server = new Child(t, program('early-writes'), args, relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const session = http2.connect(`http://127.0.0.1:${port}`)
  t.teardown(() => session.destroy())
  const request = async (): Promise<string> => {
    const chunks = await session.request().toArray()
    return Buffer.concat(chunks).toString()
  }
  t.equal(await request(), 'hello')
  const before = await server.ask<Counted>({})
  t.ok(before.writes > 0, 'the writes of the server are seen')
  const answers = await Promise.all(Array.from({ length: 64 }, request))
  t.ok(answers.every(answer => answer === 'hello'))
  const { writes, ticks } = await server.ask<Counted>({})
  return { writes: writes - before.writes, ticks: ticks - before.ticks }
}

t.test('requests that come together are fed, and answered, together before anything is loaded', async t => {
  const { writes, ticks } = await sendTogether(t)
  t.ok(writes < 32, `${writes} writes for 64 answers`)
  t.ok(ticks < 32, `ticks have run ${ticks} times`)
})

t.test('a server that awaits one request after another gets each', async t => {
  const { ticks } = await sendTogether(t, 'awaits')
  t.equal(ticks, 64)
})
