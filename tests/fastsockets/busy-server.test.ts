/** A server whose event loop stands still: its clients see what they see with TCP, where the kernel's backlog answers. */
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

/** Long enough for a greeting on a busy machine, and not as long as the other tests allow for that. */
const PATIENCE_MS = 500

interface Answer {
  readonly log: readonly string[]
  readonly wire?: string
}

/** What a client, and in the end the server, have seen, plain and relinked. */
async function compare(
  t: Test,
  tell: (client: Child, server: Child) => Promise<Answer[]>,
): Promise<readonly Answer[]> {
  const outcomes: Answer[][] = []
  for (const options of [{}, relinked()]) {
    const server = new Child(t, program('blocked'), ['server'], {
      ...options,
      stdio: ['pipe', 'inherit', 'pipe', 'ipc'],
    })
    const { port } = await server.receive<{ port: number }>()
    const env = { ...plainEnvironment(), FASTSOCKETS_GREETING_TIMEOUT_MS: String(PATIENCE_MS) }
    const client = new Child(t, program('blocked'), ['client', String(port)], { ...options, env })
    await client.receive()
    // From now on the two have a channel, if they are relinked.
    for (const what of ['connect', 'destroy']) await client.ask({ what })
    await eventually('the end of that', async () => (await server.ask<Answer>({ log: true })).log.length > 0)
    await server.ask({ block: true })
    outcomes.push(await tell(client, server))
  }
  const [plain, fast] = outcomes as [Answer[], Answer[]]
  t.equal(plain[0]?.wire, 'tcp')
  t.equal(fast[0]?.wire, 'shm')
  const logs = (answers: readonly Answer[]): unknown => answers.map(({ log }) => log)
  t.strictSame(logs(fast), logs(plain))
  return fast
}

function release(server: Child): void {
  server.process.stdin?.write('.')
}

t.test('a connect succeeds meanwhile, and what is written arrives afterwards', async t => {
  const answers = await compare(t, async (client, server) => {
    const connected = await client.ask<Answer>({ what: 'connect' })
    const written = await client.ask<Answer>({ what: 'write' })
    release(server)
    const read = await client.ask<Answer>({ what: 'read' })
    return [connected, written, read, await server.ask<Answer>({ log: true })]
  })
  t.strictSame(
    answers.map(({ log }) => log),
    [
      ['connected true 127.0.0.1 IPv4', 'a port number true'],
      [],
      ['local port true true', 'close false', "after 'close' undefined"],
      ['closed after 300010'],
    ],
  )
})

t.test('who connects and goes meanwhile is seen to come and go', async t => {
  await compare(t, async (client, server) => {
    const answers = [
      await client.ask<Answer>({ what: 'connect' }),
      await client.ask<Answer>({ what: 'destroy' }),
    ]
    release(server)
    // A connection later: the server has seen the one before.
    await client.ask({ what: 'connect' })
    await client.ask({ what: 'write' })
    await client.ask({ what: 'read' })
    return [...answers, await server.ask<Answer>({ log: true })]
  })
})

t.test('who connects, ends and goes as soon as it is heard of takes no other connection along', async t => {
  await compare(t, async (client, server) => {
    const answers = [await client.ask<Answer>({ what: 'connect' }), await client.ask<Answer>({ what: 'end' })]
    await client.ask({ what: 'replace' })
    release(server)
    answers.push(await client.ask<Answer>({ what: 'write' }), await client.ask<Answer>({ what: 'read' }))
    return answers
  })
})

t.test('a server that dies meanwhile has reset the connection', async t => {
  await compare(t, async (client, server) => {
    const connected = await client.ask<Answer>({ what: 'connect' })
    await server.kill()
    return [connected, await client.ask<Answer>({ what: 'wait' })]
  })
})

t.test('several that connect meanwhile know their ports, which are those that the server sees', async t => {
  await compare(t, async (client, server) => {
    const [first, connected] = [
      await client.ask<Answer>({ what: 'connect' }),
      await client.ask<Answer>({ what: 'connect many' }),
    ]
    release(server)
    const answers = [first, connected, await client.ask<Answer>({ what: 'many' })]
    await client.ask({ what: 'destroy' })
    return answers
  })
})

t.test(
  'what the first connection writes before any answer is taken, and arrives though its writer is killed',
  async t => {
    const server = new Child(t, program('blocked'), ['server', 'at-channel'], {
      ...relinked({ env: { ...plainEnvironment(), FASTSOCKETS_START: 'fast' } }),
      stdio: ['pipe', 'inherit', 'pipe', 'ipc'],
    })
    const { port } = await server.receive<{ port: number }>()
    const env = { ...plainEnvironment(), FASTSOCKETS_START: 'fast' }
    const client = new Child(t, program('blocked'), ['client', String(port)], relinked({ env }))
    await client.receive()
    const { wire } = await client.ask<Answer>({ what: 'connect' })
    t.equal(wire, 'shm')
    await client.ask({ what: 'write early' })
    await client.kill()
    release(server)
    t.strictSame(await server.receive(), { accepted: 0 }, 'the server had not accepted it by then')
    const log = await eventually('its end', async () => {
      const found = (await server.ask<Answer>({ log: true })).log
      return found.length > 0 && found
    })
    t.strictSame(log, [`closed after ${2 << 20}`])
  },
)
