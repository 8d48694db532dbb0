/** Sockets and servers that are handed to child processes. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import net, { transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { program, REGISTER, relinked } from '../support/relinked.ts'

async function start(
  t: Test,
  what: string,
  preload = REGISTER.href,
): Promise<{ parent: Child; port: number }> {
  const parent = new Child(t, program('handing-server'), [what, preload], relinked())
  return { parent, port: (await parent.receive<{ port: number }>()).port }
}

for (const what of ['socket', 'paused']) {
  t.test(`${what}: a fast socket is sent to a child, which serves it and knows its ends`, async t => {
    const { parent, port } = await start(t, what)
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    t.equal(transportOf(socket).transport, 'shm')
    const { localPort } = socket
    const sent = randomBytes(3_000_000)
    socket.end(sent)
    const received = Buffer.concat(await socket.toArray())
    t.ok(received.equals(sent), 'all bytes come back, then the end')
    const told = [await parent.receive(), await parent.receive()]
    t.match(new Set(told), new Set([{ sent: 'ok' }, { names: ['127.0.0.1', port, '127.0.0.1', localPort] }]))
  })
}
