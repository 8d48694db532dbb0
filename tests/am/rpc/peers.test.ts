/** Clients of several peers: in turn, the least busy, each; peers that come, go and come back, by name. */
import t, { type Test } from 'tap'
import { openEndpoint } from '../../../am/index.ts'
import { connectService, disconnect, type PeerEvent } from '../../../am/rpc/index.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { Named } from '../../support/named.ts'
import { eventually, until, withWatchdog } from '../../support/until.ts'
import { printer } from './printer.ts'

const fixture = new URL('./service-child.js', import.meta.url)

const named = new Named(t)
process.env.FASTSOCKETS_NAMES = named.address
t.before(() => named.up())

async function start(t: Test, name = '') {
  const env = { ...plainEnvironment(), FASTSOCKETS_NAMES: named.address }
  const child = new Child(t, fixture, ['all', name], { env })
  return { child, name: (await child.receive<{ name: string }>()).name, pid: child.pid }
}

async function open(t: Test) {
  const endpoint = await openEndpoint()
  t.teardown(() => endpoint.close())
  return endpoint
}

t.test('any: in turn, or the peer with the fewest calls under way', async t => {
  const endpoint = await open(t)
  const servers = [await start(t), await start(t), await start(t)]
  const any = servers.map(({ name }) => name)
  const pids = new Set(servers.map(({ pid }) => pid))
  const events: PeerEvent[] = []
  const client = await connectService(endpoint, { any }, printer, { onPeer: event => events.push(event) })
  await until('all three', () => events.length === 3)
  const turns = [await client.pid(), await client.pid(), await client.pid()]
  t.strictSame(new Set(turns), pids)
  t.strictSame([await client.pid(), await client.pid(), await client.pid()], turns)

  let ups = 0
  const choosy = await connectService(endpoint, { any }, printer, {
    choose: 'fewest-under-way',
    onPeer: () => ups++,
  })
  await until('all three again', () => ups === 3)
  const held = new AbortController()
  const first = await choosy.pid() // the first of three that are idle; so `hang` goes there, too
  const hanging = choosy.hang(undefined, { signal: held.signal }).catch(() => {})
  for (let i = 0; i < 6; i++) t.not(await choosy.pid(), first, 'the busy peer is left alone')
  held.abort()
  await hanging
  await disconnect(choosy)
  t.match(await choosy.pid().catch(error => error), { code: 'ERR_RPC_UNAVAILABLE', reason: 'CLOSED' })

  await servers[1]?.child.kill()
  await until('its end', () => events.length === 4)
  t.match(events[3], { type: 'down', peer: servers[1]?.name, reason: 'PEER_DEAD' })
  const left = new Set(await Promise.all(Array.from({ length: 8 }, () => client.pid())))
  t.strictSame([...left].sort(), turns.filter(pid => pid !== servers[1]?.pid).sort())
})

t.test('a program that calls again at once while no peer is up does not stop the event loop', async t => {
  const endpoint = await open(t)
  const server = await start(t)
  const events: PeerEvent[] = []
  const client = await connectService(endpoint, { any: [server.name] }, printer, {
    onPeer: event => events.push(event),
  })
  await server.child.kill()
  await until('its end', () => events.length === 2)
  let isOver = false
  setTimeout(() => {
    isOver = true
  }, 10)
  const again = (): Promise<unknown> => client.pid().catch(error => (isOver ? error : again()))
  t.match(await again(), { code: 'ERR_RPC_UNAVAILABLE', reason: 'NO_PEER' })
})

t.test('each: what became of the call at every peer', async t => {
  const endpoint = await open(t)
  const servers = [await start(t), await start(t)]
  const each = servers.map(({ name }) => name)
  const client = await connectService(endpoint, { each }, printer)
  t.match(
    await client.pid(),
    servers.map(({ name, pid }) => ({ peer: name, status: 'fulfilled', value: pid })),
  )
  t.match(await client.fail('no'), [
    { status: 'rejected', reason: { code: 'E_PRINTER' } },
    { status: 'rejected' },
  ])
})

t.test('a prefix of published names: peers come and go', async t => {
  const endpoint = await open(t)
  const first = await start(t, 'workers/a')
  const events: string[] = []
  const onPeer = ({ type, peer }: PeerEvent): unknown => events.push(`${peer} ${type}`)
  const client = await withWatchdog(
    'the first',
    connectService(endpoint, { any: 'workers/*' }, printer, { onPeer }),
  )
  t.equal(await client.pid(), first.pid)
  const second = await start(t, 'workers/b')
  await until('the second', () => events.includes('workers/b up'))
  t.strictSame(new Set([await client.pid(), await client.pid()]), new Set([first.pid, second.pid]))
  first.child.send({})
  await first.child.end()
  await until('the end of the first', () => events.includes('workers/a down'))
  t.equal(await client.pid(), second.pid)
  const again = await start(t, 'workers/a')
  await until(
    'a new one under the old name',
    () => events.filter(event => event === 'workers/a up').length === 2,
  )
  t.strictSame(new Set([await client.pid(), await client.pid()]), new Set([again.pid, second.pid]))
  await disconnect(client)
})

t.test('one name: after the death of its owner, the next call finds the new one', async t => {
  const endpoint = await open(t)
  const first = await start(t, 'single')
  const client = await connectService(endpoint, 'single', printer)
  t.equal(await client.pid(), first.pid)
  const lost = client.hang().catch(error => error)
  await first.child.kill()
  t.match(await withWatchdog('the call', lost), { code: 'ERR_RPC_UNAVAILABLE', reason: 'PEER_DEAD' })
  const second = await start(t, 'single')
  await eventually('the new owner', async () => (await client.pid().catch(() => 0)) === second.pid)
  t.equal(await client.pid(), second.pid)
})

t.test('nobody to call is said', async t => {
  const endpoint = await open(t)
  const reject = (to: Parameters<typeof connectService>[1]) =>
    connectService(endpoint, to, printer).catch(error => error)
  t.match(await reject('no/such/name'), { code: 'ERR_RPC_UNAVAILABLE', reason: 'ERR_AM_NO_SUCH_ENDPOINT' })
  t.match(await reject({ any: ['no/such', 'nor/this'] }), { code: 'ERR_RPC_UNAVAILABLE' })
  t.match(await reject({ any: [] }), { code: 'ERR_RPC_ARGUMENT' })
  t.match(await reject({ any: 'no-star' }), { code: 'ERR_RPC_ARGUMENT' })
  t.match(await reject(7), { code: 'ERR_AM_NOT_MAPPED' })
})
