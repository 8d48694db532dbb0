/** UDP sockets of cluster workers, of worker threads and of several processes, and policies that change. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { DatagramTransport } from '../../../fastsockets/datagram/datagram-transport.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { NOBODY, noOtherUser } from '../../support/other-user.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Taken } from '../programs/datagram-peer.ts'

async function start(t: Test, owner: string): Promise<{ echo: Child; client: Child }> {
  const echo = new Child(t, program('datagram-owners'), [owner], relinked())
  const { port } = await echo.receive<{ port: number }>()
  const args = ['client', 'udp4', '', '127.0.0.1', String(port)]
  return { echo, client: new Child(t, program('datagrams'), args, relinked()) }
}

function transportOf(child: Child): Promise<DatagramTransport> {
  return child.ask<DatagramTransport>({ pairs: true })
}

async function echoes(client: Child): Promise<void> {
  const { isSame } = await client.ask<{ isSame: boolean }>({ echoes: 50 })
  if (!isSame) throw new Error('an echo has changed')
}

async function untilFast(client: Child): Promise<void> {
  await eventually('the pair to be fast', async () => {
    await echoes(client)
    const { pairs } = await transportOf(client)
    return pairs.some(({ sends, receives }) => sends === 'shm' && receives === 'shm')
  })
}

t.test('a worker of a cluster shares its socket: it stays with the kernel', async t => {
  const { echo, client } = await start(t, 'cluster')
  for (let i = 0; i < 4; i++) await echoes(client)
  t.match(await transportOf(echo), { transport: 'udp', reason: { code: 'OWN_HANDLE' }, pairs: [] })
  t.equal((await transportOf(client)).transport, 'udp')
})

t.test('a worker thread', async t => {
  const { echo, client } = await start(t, 'thread')
  await untilFast(client)
  t.equal((await transportOf(echo)).transport, 'shm')
})

t.test('a socket that another process gets, too, returns to the kernel', async t => {
  const { echo, client } = await start(t, 'sent')
  await untilFast(client)
  t.match(await echo.ask({ send: true }), { reason: { code: 'OWN_HANDLE' } })
  t.equal(echo.stderr, '', 'no warning of Node')
  await eventually('the end of the pair', async () => {
    await echoes(client)
    return (await transportOf(client)).transport === 'udp'
  })
})

t.test(
  'another user that the policy lets in: there is a channel, and datagrams stay with the kernel',
  { skip: noOtherUser(program('datagram-peer')) },
  async t => {
    const env = { ...plainEnvironment(), FASTSOCKETS_USERS: `0,${NOBODY}` }
    const peerOf = async (options: object): Promise<{ peer: Child; port: number }> => {
      const peer = new Child(t, program('datagram-peer'), [], relinked({ env, ...options }))
      return { peer, port: (await peer.receive<{ port: number }>()).port }
    }
    const [from, nobody, own] = await Promise.all([
      peerOf({}),
      peerOf({ uid: NOBODY, gid: NOBODY }),
      peerOf({}),
    ])
    const send = (to: { port: number }): Promise<object> =>
      from.peer.ask({ do: 'send', port: to.port, count: 50 })
    await eventually('a fast pair with our own user', async () => {
      await send(own)
      await send(nobody)
      const { pairs } = await from.peer.ask<DatagramTransport>({ do: 'transport' })
      return pairs.some(({ port, sends }) => port === own.port && sends === 'shm')
    })
    await send(nobody)
    const { pairs } = await from.peer.ask<DatagramTransport>({ do: 'transport' })
    t.match(
      pairs.filter(({ port }) => port === nobody.port),
      [{ sends: 'udp', receives: 'udp', sent: 0 }],
    )
    await eventually('the last datagram by the kernel', async () => {
      const taken = await nobody.peer.ask<Taken>({ do: 'take' })
      if (taken.count > 0) t.ok(taken.isInOrder && taken.ports.every(port => port === from.port))
      return taken.count > 0
    })
    t.match(await nobody.peer.ask({ do: 'transport' }), { transport: 'udp' })
  },
)

t.test('a policy that changes', async t => {
  const file = join(t.testdir({}), 'policy.json')
  const write = (datagrams: string): void => {
    writeFileSync(`${file}.new`, JSON.stringify({ datagrams }), { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
  write('fast')
  const env = { ...plainEnvironment(), FASTSOCKETS_POLICY: file }
  const echo = new Child(t, program('datagrams'), ['echo', 'udp4', '127.0.0.1'], relinked({ env }))
  const { port } = await echo.receive<{ port: number }>()
  const args = ['client', 'udp4', '', '127.0.0.1', String(port)]
  const client = new Child(t, program('datagrams'), args, relinked())
  await untilFast(client)
  write('kernel')
  await eventually('both directions to return', async () => {
    await echoes(client)
    return (await transportOf(client)).transport === 'udp'
  })
  t.match(await transportOf(echo), { transport: 'udp', reason: { code: 'POLICY' } })
})
