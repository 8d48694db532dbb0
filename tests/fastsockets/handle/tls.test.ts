/** TLS sockets over handles that change while they connect: the same events, plain and relinked, and the same bytes. */
import t, { type Test } from 'tap'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

interface Seen {
  readonly transport: string
  readonly log: readonly string[]
}

async function connect(t: Test, way: string, port: number, options = {}): Promise<Seen> {
  return await new Child(t, program('tls-client'), [way, String(port)], options).receive<Seen>()
}

const EVENTS = ['connect ', 'secureConnect ', 'data heard early words', 'end ', 'close false']

for (const [server, options, transport] of [
  ['is relinked', relinked(), 'shm'],
  ['is not relinked', {}, 'tcp'],
] as const) {
  t.test(`a server that ${server}`, async t => {
    const { port } = await new Child(t, program('tls-server'), [], options).receive<{ port: number }>()

    await t.test('TLS over a socket that still connects', async t => {
      t.same(await connect(t, 'over', port), { transport: 'tcp', log: EVENTS })
      t.same(await connect(t, 'over', port, relinked()), { transport, log: EVENTS })
    })

    await t.test('TLS over a socket that connects to the second of two addresses', async t => {
      t.same(await connect(t, 'over-second', port, relinked()), { transport, log: EVENTS })
    })

    await t.test('a session that is set while TLS connects', async t => {
      const resume = (clientOptions = {}): Promise<unknown> =>
        new Child(t, program('tls-session'), [String(port)], clientOptions).receive()
      t.same(await resume(), { transport: 'tcp', isReused: true })
      t.same(await resume(relinked()), { transport, isReused: true })
    })

    await t.test('TLS that goes on from a server that has no room for more', async t => {
      await new Child(t, program('full-listener'), ['127.0.0.2', String(port)]).receive()
      t.same(await connect(t, 'second', port), { transport: 'tcp', log: EVENTS })
      t.same(await connect(t, 'second', port, relinked()), { transport, log: EVENTS })
    })

    await t.test('TLS that goes on from a server whose greeting does not come', async t => {
      const stopped = new Child(t, program('server'), ['echo', '127.0.0.2', String(port)], relinked())
      await stopped.receive()
      stopped.process.kill('SIGSTOP')
      t.same(await connect(t, 'second', port, relinked()), { transport, log: EVENTS })
    })
  })
}
