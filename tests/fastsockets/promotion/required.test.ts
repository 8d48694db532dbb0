/** A listener whose policy requires the fast way, and clients that start on TCP. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

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
