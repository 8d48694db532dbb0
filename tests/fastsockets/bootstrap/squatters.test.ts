/** A squatter has the first place at which a client looks for a listener: the client goes on to the next one. */

import type { ForkOptions } from 'node:child_process'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { unixKey } from '../../../fastsockets/host/unix-paths.ts'
import net, { type Socket, transportOf } from '../../../fastsockets/index.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { NOBODY, noOtherUser } from '../../support/other-user.ts'
import { portWithFirstHashed } from '../../support/ports.ts'
import { program, relinked } from '../../support/relinked.ts'
import { withWatchdog } from '../../support/until.ts'

const skip = noOtherUser(program('squatter'))

interface Counts {
  readonly callers: number
  readonly heard: number
  readonly atDoor: number
}

/** Longer than a client waits for a listener that it knows, and not as long as for one of which a greeting speaks. */
const BUSY_MS = 300
const ANOTHER = { uid: NOBODY, gid: NOBODY }

function startSquatter(t: Test, user: ForkOptions, ...args: string[]): Child {
  return new Child(t, program('squatter'), args, user)
}

/** A relinked server whose first hashed port is squatted, and a connection to it. */
async function connectPast(
  t: Test,
  what: string,
  user: ForkOptions = ANOTHER,
): Promise<{ squatter: Child; server: Child; socket: Socket }> {
  const port = await portWithFirstHashed()
  const squatter = startSquatter(t, user, what, String(port))
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
  t.ok(socket.readableEnded, 'and the death of the server is not hidden')
})

t.test('a greeting that names a door of another user: not a byte is said there', { skip }, async t => {
  const { squatter, socket } = await connectPast(t, 'door')
  t.equal(transportOf(socket).transport, 'shm', 'and the next hashed port is asked')
  await expectEcho(t, socket, 'hello')
  t.match(await squatter.ask<Counts>({}), { heard: 0, atDoor: 0 })
  t.ok((await squatter.ask<Counts>({})).callers > 0)
})

for (const what of ['flags', 'endpoint', 'listener', 'silent'])
  t.test(`a false greeting (${what}) costs its squatter's victim nothing but time`, { skip }, async t => {
    const { squatter, socket } = await connectPast(t, what)
    t.equal(transportOf(socket).transport, 'shm')
    await expectEcho(t, socket, 'hello')
    t.ok((await squatter.ask<Counts>({})).callers > 0, 'the client has called the squatter')
  })

t.test('a silent door of the own user: the next hashed port is asked', async t => {
  const { squatter, socket } = await connectPast(t, 'door', {})
  t.equal(transportOf(socket).transport, 'shm')
  await expectEcho(t, socket, 'hello')
  t.ok((await squatter.ask<Counts>({})).callers > 0)
})

t.test('a greeting that was copied from a server to which there is a channel', { skip }, async t => {
  const [port, other] = [await portWithFirstHashed(), await portWithFirstHashed()]
  const squatter = startSquatter(t, ANOTHER, 'known', String(port), String(other))
  await squatter.receive()
  for (const one of [port, other])
    await new Child(t, program('server'), ['echo', '127.0.0.1', String(one)], relinked()).receive()
  await squatter.ask({ learn: true })
  for (const one of [other, port]) {
    const socket = net.connect(one, '127.0.0.1')
    t.teardown(() => void socket.destroy())
    await withWatchdog('a connection', once(socket, 'connect'))
    t.equal(transportOf(socket).transport, 'shm')
    await expectEcho(t, socket, `to ${one}`)
  }
  t.ok((await squatter.ask<Counts>({})).callers > 0)
})

t.test('a greeting that was copied from a server which is busy', { skip }, async t => {
  const [port, other] = [await portWithFirstHashed(), await portWithFirstHashed()]
  const squatter = startSquatter(t, ANOTHER, 'known', String(port), String(other))
  await squatter.receive()
  const [server, busy] = [port, other].map(
    one => new Child(t, program('server'), ['echo', '127.0.0.1', String(one)], relinked()),
  ) as [Child, Child]
  await server.receive()
  await busy.receive()
  await squatter.ask({ learn: true })
  // Other tests are more patient with greetings, and so with servers.
  const env = { ...plainEnvironment(), FASTSOCKETS_GREETING_TIMEOUT_MS: '80' }
  const client = new Child(t, program('client'), [String(port), 'later', String(other)], relinked({ env }))
  t.match(await client.receive(), { first: true })
  busy.process.kill('SIGSTOP')
  setTimeout(() => busy.process.kill('SIGCONT'), BUSY_MS)
  client.send({})
  t.match(await client.receive(), { connected: 'shm' })
  t.match(await client.receive(), { data: 5 }, 'the true server answers')
  t.ok((await squatter.ask<Counts>({})).callers > 0)
})

t.test('the abstract name at which a unix listener is looked for first', { skip }, async t => {
  const name = `@fastsockets-test-${process.pid}`
  const key = unixKey(name.replace('@', '\0')) as string
  const squatter = startSquatter(t, ANOTHER, 'shadow', key)
  await squatter.receive()
  const plain = new Child(t, program('unix'), ['server', name])
  await plain.receive()
  const left = await new Child(t, program('unix'), ['client', name], relinked()).receive()
  t.match(left, { transport: 'pipe', reason: { code: 'OTHER_USER', text: /user 65534/ } })
  await plain.kill()
  await new Child(t, program('unix'), ['server', name], relinked()).receive()
  t.match(await new Child(t, program('unix'), ['client', name], relinked()).receive(), { transport: 'shm' })
  t.match(await squatter.ask<Counts>({}), { callers: 2, heard: 0, atDoor: 0 })
})
