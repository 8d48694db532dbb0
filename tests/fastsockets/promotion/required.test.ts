/** A listener whose policy requires the fast way, and clients that start on TCP. */
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  encodeEarly,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
} from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { hashedPort } from '../../../fastsockets/bootstrap/hashed-port.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { earlyPortOf, greetingOf } from '../../support/greeting.ts'
import { portWithFirstHashed } from '../../support/ports.ts'
import { program, relinked } from '../../support/relinked.ts'

const PATIENCE_MS = 30_000
const folder = mkdtempSync(join(tmpdir(), 'required-'))
const file = join(folder, 'policy.yaml')
writeFileSync(file, 'rules: [{ role: server, use: require }]\n', { mode: 0o600 })
const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp' }

async function start(t: Test, first: string): Promise<{ server: Child; port: string }> {
  const options = relinked({ env: { ...env, FASTSOCKETS_POLICY: file } })
  const server = new Child(t, program('required'), ['server', '0', first], options)
  const { port } = await server.receive<{ port: number }>()
  return { server, port: String(port) }
}

for (const first of ['client', 'server'])
  for (const phase of ['light', 'loaded'])
    t.test(`a client in its ${phase} phase, the ${first} speaks first`, async t => {
      const { server, port } = await start(t, first)
      const clientEnv = phase === 'light' ? env : { ...env, FASTSOCKETS_ABLATE: 'price=100' }
      const client = new Child(t, program('required'), ['client', port, first], relinked({ env: clientEnv }))
      const seen = await server.receive<{ transport: string; port: number }>()
      t.equal(seen.transport, 'shm', 'the program sees a fast connection')
      t.strictSame(await client.receive(), { data: 'hello', port: seen.port })
      t.strictSame(await client.receive(), { data: 'again' })
      client.send({})
      t.strictSame(await client.receive(), { end: true })
    })

t.test('a client that is not relinked is reset before an earlier one that may be relinked', async t => {
  const { server, port } = await start(t, 'client')
  // Its command line names the preload, so it is held for as long as a relinked client may need.
  const held = new Child(t, program('client'), [port, 'fastsockets/register'])
  const { port: heldPort } = await held.receive<{ port: number }>()
  const plain = new Child(t, program('client'), [port])
  let said: { connected?: string; error?: string }
  do said = await plain.receive()
  while (said.connected !== undefined)
  t.strictSame(said, { error: 'ECONNRESET' })
  const { refused } = await server.receive<{ refused: number }>()
  t.not(refused, heldPort, 'the time of the earlier one has not ended')
  const client = new Child(t, program('required'), ['client', port, 'client'], relinked({ env }))
  let seen: { transport?: string; refused?: number }
  do seen = await server.receive()
  while (seen.refused === heldPort)
  t.equal(seen.transport, 'shm', 'the first that the program sees')
  await client.receive()
})

const clientFile = join(folder, 'client.yaml')
writeFileSync(clientFile, 'rules: [{ role: client, use: require }]\n', { mode: 0o600 })
const { FASTSOCKETS_START: _, ...plainEnv } = plainEnvironment()

for (const role of ['server', 'thread', 'cluster'])
  t.test(`a client that requires the fast way, and a ${role} that has loaded nothing for it`, async t => {
    const server = new Child(t, program('required'), [role, '0', 'server'], relinked({ env: plainEnv }))
    const { port } = await server.receive<{ port: number }>()
    const options = relinked({ env: { ...plainEnv, FASTSOCKETS_POLICY: clientFile } })
    const client = new Child(t, program('required'), ['client', String(port)], options)
    const seen = await server.receive<{ transport: string; port: number }>()
    t.equal(seen.transport, 'shm')
    t.strictSame(await client.receive(), { data: 'hello', port: seen.port })
    t.strictSame(await client.receive(), { data: 'again' })
    client.send({})
    t.strictSame(await client.receive(), { end: true })
  })

t.test('a server loads nothing for callers of its hashed port that do not ask for the rest', async t => {
  const server = new Child(t, program('light-phase'), ['server'], relinked({ env: plainEnv }))
  const { port } = await server.receive<{ port: number }>()
  const hashed = await earlyPortOf(port)
  const call = async (said: Buffer | string): Promise<Buffer> => {
    const caller = net.connect(hashed, '127.0.0.1')
    let received = Buffer.alloc(0)
    caller.on('data', bytes => {
      received = Buffer.concat([received, bytes])
      if (received.equals(encodeEarly(port))) caller.write(said)
    })
    const silent = said === '' ? await once(caller, 'data') : undefined
    if (silent) caller.end()
    await once(caller, 'close')
    return received
  }
  t.strictSame(await call(''), encodeEarly(port), 'the first bytes of a greeting')
  t.strictSame(await call('GET / HTTP/1.1\r\n'), encodeEarly(port), 'a stranger gets no others')
  t.strictSame(await server.ask({}), { isLoaded: false })
  t.equal((await call(HELLO_MAGIC)).length, INTRODUCTION_SIZE, 'a client gets all of them')
  t.strictSame(await server.ask({}), { isLoaded: true })
})

t.test('a client that waits at a later hashed port is greeted, though the first is free by then', async t => {
  const port = await portWithFirstHashed()
  const squatter = net.createServer().listen(hashedPort(port, 0), '127.0.0.1')
  await once(squatter, 'listening')
  const server = new Child(t, program('light-phase'), ['server', String(port)], relinked({ env: plainEnv }))
  await server.receive()
  squatter.close()
  await once(squatter, 'close')
  const greeted = await greetingOf('127.0.0.1', port, 4, PATIENCE_MS)
  t.match(greeted, { greeting: { port } })
  if ('connection' in greeted) greeted.connection.destroy()
  t.strictSame(await server.ask({}), { isLoaded: true })
})

t.test(
  'a server whose hashed port is full of silent callers loads the rest, which counts them by user',
  async t => {
    const server = new Child(t, program('light-phase'), ['server'], relinked({ env: plainEnv }))
    const { port } = await server.receive<{ port: number }>()
    const hashed = await earlyPortOf(port)
    const silent = Array.from({ length: 300 }, () => net.connect(hashed, '127.0.0.1'))
    t.teardown(() => {
      for (const caller of silent) caller.destroy()
    })
    // The server hangs up on those that are too many.
    await Promise.race(silent.map(caller => once(caller.on('error', () => {}).resume(), 'close')))
    t.strictSame(await server.ask({}), { isLoaded: true })
  },
)
