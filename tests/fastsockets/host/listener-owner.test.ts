/** The kernel's table of listeners, by which a client judges whether another user's process may serve a port. */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { listensAlone } from '../../../fastsockets/host/listener-owner.ts'
import { Child } from '../../support/child.ts'
import { NOBODY, noOtherUser } from '../../support/other-user.ts'
import { program } from '../../support/relinked.ts'

const OWN = process.geteuid?.() ?? 0

async function listen(t: Test, host: string, ipv6Only = false): Promise<number> {
  const server = net.createServer().listen({ port: 0, host, ipv6Only })
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return (server.address() as AddressInfo).port
}

t.test('listeners on an address, and on all', async t => {
  for (const [host, address, family, ipv6Only] of [
    ['127.0.0.1', '127.0.0.1', 4, false],
    ['0.0.0.0', '127.0.0.1', 4, false],
    ['::', '127.0.0.1', 4, false],
    ['::1', '::1', 6, false],
    ['::', '::1', 6, true],
  ] as const) {
    const port = await listen(t, host, ipv6Only)
    t.ok(listensAlone(OWN, address, port, family), `${host} for ${address}`)
    t.notOk(listensAlone(OWN + 1, address, port, family))
  }
})

t.test('no listener, or one on another address', async t => {
  t.notOk(listensAlone(OWN, '127.0.0.1', await listen(t, '127.0.0.2'), 4))
  const port = await listen(t, '127.0.0.1')
  t.notOk(listensAlone(OWN, '::1', port, 6))
  t.notOk(listensAlone(OWN, '127.0.0.1', 1, 4))
})

t.test('a listener of another user', { skip: noOtherUser(program('server')) }, async t => {
  const server = new Child(t, program('server'), ['echo'], { uid: NOBODY, gid: NOBODY })
  const { port } = await server.receive<{ port: number }>()
  t.ok(listensAlone(NOBODY, '127.0.0.1', port, 4))
  t.notOk(listensAlone(OWN, '127.0.0.1', port, 4))
})
