/** Another user has the name at which a listener is looked for: it can keep clients from the fast way, and nothing else. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { unixKey } from '../../fastsockets/host/unix-paths.ts'
import net, { type Socket, transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { NOBODY, noOtherUser } from '../support/other-user.ts'
import { portWithFirstHashed } from '../support/ports.ts'
import { program, relinked } from '../support/relinked.ts'
import { withWatchdog } from '../support/until.ts'

const skip = noOtherUser(program('squatter'))

interface Counts {
  readonly callers: number
  readonly heard: number
  readonly atDoor: number
}

function startSquatter(t: Test, ...args: string[]): Child {
  return new Child(t, program('squatter'), args, { uid: NOBODY, gid: NOBODY })
}

/** A relinked server whose first hashed port is squatted, and a connection to it. */
async function connectPast(
  t: Test,
  what: string,
): Promise<{ squatter: Child; server: Child; socket: Socket }> {
  const port = await portWithFirstHashed()
  const squatter = startSquatter(t, what, String(port))
  await squatter.receive()
  const server = new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked())
  await server.receive()
  await squatter.ask({ learn: true })
  const socket = net.connect(port, '127.0.0.1')
  t.teardown(() => void socket.destroy())
  await withWatchdog('a connection', once(socket, 'connect'))
  return { squatter, server, socket }
}

async function expectEcho(t: Test, socket: Socket, text: string): Promise<void> {
  socket.write(text)
  const [data] = await withWatchdog('an echo', once(socket, 'data'))
  t.equal(String(data), text)
}

t.test('who relays the bootstrap owns nothing of the connection', { skip }, async t => {
  const { squatter, server, socket } = await connectPast(t, 'relay')
  t.equal(transportOf(socket).transport, 'shm')
  await expectEcho(t, socket, 'before')
  const ended = once(socket, 'end')
  const counts = await squatter.ask<Counts>({ end: true })
  t.ok(counts.callers > 0, 'the client has called the squatter')
  t.equal(counts.heard, 0, 'and has said nothing to it')
  await expectEcho(t, socket, 'the end of what was relayed is not the end of the connection')

  const again = net.connect(socket.remotePort as number, '127.0.0.1')
  t.teardown(() => void again.destroy())
  await withWatchdog('a connection', once(again, 'connect'))
  await expectEcho(t, again, 'and another one')

  socket.resume()
  await server.kill()
  await withWatchdog('the end', ended)
  t.pass('and the death of the server is not hidden')
})

t.test('a greeting that names a door of another user: not a byte is said there', { skip }, async t => {
  const { squatter, socket } = await connectPast(t, 'door')
  t.match(transportOf(socket), { transport: 'tcp', reason: { code: 'OTHER_USER', text: /user 65534/ } })
  await expectEcho(t, socket, 'hello')
  t.match(await squatter.ask<Counts>({}), { heard: 0, atDoor: 0 })
})

for (const [what, code] of [
  ['flags', 'HANDSHAKE'],
  ['endpoint', 'HANDSHAKE'],
  ['listener', 'NOT_LISTENING'],
] as const) {
  t.test(
    `a greeting whose ${what} were changed on the way: the connection is made over TCP`,
    { skip },
    async t => {
      const { socket } = await connectPast(t, what)
      t.match(transportOf(socket), { transport: 'tcp', reason: { code } })
      await expectEcho(t, socket, 'hello')
    },
  )
}

t.test(
  'the abstract name at which a unix listener is looked for: the kernel serves its clients',
  { skip },
  async t => {
    const name = `\0fastsockets-test-${process.pid}`
    const squatter = startSquatter(t, 'shadow', unixKey(name) as string)
    await squatter.receive()
    const server = net.createServer(socket => socket.pipe(socket)).listen(name)
    await once(server, 'listening')
    t.teardown(() => void server.close())
    const client = new Child(t, program('unix'), ['client', name.replace('\0', '@')], relinked())
    t.match(await client.receive(), {
      transport: 'pipe',
      reason: { code: 'OTHER_USER', text: /user 65534/ },
    })
    t.match(await squatter.ask<Counts>({}), { callers: 1, heard: 0, atDoor: 0 })
  },
)
