/** DEBUG=fastsockets:* has the outcome of each attempt, with its code. */
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { freePort } from '../../support/ports.ts'
import { program, relinked } from '../../support/relinked.ts'

const env = { ...plainEnvironment(), DEBUG: 'fastsockets:*', FASTSOCKETS_START: 'fast' }

async function startServer(t: Test, options = {}): Promise<{ server: Child; port: number }> {
  const server = new Child(t, program('server'), ['echo'], options)
  return { server, ...(await server.receive<{ port: number }>()) }
}

async function logOf(t: Test, port: number, more: object = {}): Promise<string> {
  const options = relinked({ env: { ...env, ...more } })
  const client = new Child(t, program('reason'), [String(port)], options)
  await client.receive()
  await client.end()
  return client.stderr
}

t.test('the outcome of each connect', async t => {
  const fast = await startServer(t, relinked({ env }))
  t.match(await logOf(t, fast.port), new RegExp(`127.0.0.1 port ${fast.port}: shm`))
  t.match(fast.server.stderr, /from 127.0.0.1 port \d+: shm/, 'and of what is accepted')
  const plain = await startServer(t)
  t.match(await logOf(t, plain.port), new RegExp(`127.0.0.1 port ${plain.port}: tcp, NOT_RELINKED: `))
  const none = await freePort()
  t.match(await logOf(t, none), new RegExp(`127.0.0.1 port ${none}: tcp, NOT_LISTENING: `))
  const atFirst = { FASTSOCKETS_START: 'tcp' }
  t.match(await logOf(t, none, atFirst), new RegExp(`127.0.0.1 port ${none}: tcp at first, STARTED_ON_TCP`))
  const required = { FASTSOCKETS_USE: 'require' }
  t.match(await logOf(t, none, required), new RegExp(`127.0.0.1 port ${none}: tcp, NOT_LISTENING: `))
  t.match(await logOf(t, fast.port, { FASTSOCKETS_USE: 'tcp' }), /tcp, POLICY: /)
  t.match(fast.server.stderr, /from \S*127.0.0.1 port \d+: tcp, ACCEPTED/)
})
