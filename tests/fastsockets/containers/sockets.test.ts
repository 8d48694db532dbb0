/** Sockets between two containers of one host that share a rendezvous folder. */
import { mkdirSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Child } from '../../support/child.ts'
import {
  type ContainerOptions,
  type Containers,
  childIn,
  makeContainers,
  namesIn,
  noContainers,
} from '../../support/containers.ts'
import { program } from '../../support/relinked.ts'
import type { Called, Question, Wire } from '../programs/neighbour.ts'

const skip = noContainers()
if (skip) t.comment(`SKIPPED: sockets between containers: ${skip}`)
const neighbour = program('neighbour')
const PORT = 8080
const SHARED = 0o1777

interface Served extends Containers {
  readonly server: Child
  readonly name: string
}

/** A server on all addresses of the far container. */
async function serve(t: Test, mode = 0o700, options: ContainerOptions = {}): Promise<Served> {
  const containers = makeContainers(t, mode, mode === SHARED ? 0 : options.uid)
  const server = await serverIn(t, containers, options)
  return { ...containers, server, name: `tcp4-${containers.far.address}-${PORT}` }
}

async function serverIn(t: Test, containers: Containers, options: ContainerOptions = {}): Promise<Child> {
  const server = childIn(t, containers, containers.far, neighbour, [], options)
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  return server
}

/** What a new client in the near container gets. */
async function call(t: Test, containers: Containers, options: ContainerOptions = {}): Promise<Called> {
  const client = childIn(t, containers, containers.near, neighbour, [], options)
  const called = await callFrom(client, containers)
  await client.kill()
  return called
}

function callFrom(client: Child, { far }: Containers): Promise<Called> {
  return client.ask<Called>({ ask: 'call', host: far.address, port: PORT } satisfies Question)
}

const SHARES_MEMORY = { transport: 'shm', echoed: 200_000 }

function onTcp(code: string, text: RegExp): object {
  return { transport: 'tcp', echoed: 200_000, reason: { code, text } }
}

t.test('one user: memory is shared, and both see the addresses that TCP would show', { skip }, async t => {
  const containers = await serve(t)
  const { near, far, server, name } = containers
  t.strictSame(namesIn(containers), [name], 'one name for the address, none for loopback')
  const called = await call(t, containers)
  t.match(called, { ...SHARES_MEMORY, local: near.address, remote: far.address })
  t.match(called.there, { transport: 'shm', local: far.address, remote: near.address })
  const tcp = await call(t, containers, { isPlain: true })
  t.match(tcp, { local: near.address, remote: far.address, echoed: 200_000 }, 'TCP serves a plain client')
  t.match(tcp.there, { transport: 'tcp', local: far.address, remote: near.address })
  await server.ask({ ask: 'leave' })
  await server.end()
  t.strictSame(namesIn(containers), [], 'a clean exit leaves no name')
})

t.test('a connection has the step that failed on record', { skip }, async t => {
  const containers = await serve(t)
  const { folder, name, server } = containers
  t.match(
    await call(t, containers, { env: { FASTSOCKETS_RENDEZVOUS: '/nowhere/at/all' } }),
    onTcp('NO_RENDEZVOUS', /the rendezvous folder \/nowhere\/at\/all does not exist/),
  )
  const place = join(folder, name)
  unlinkSync(place)
  symlinkSync('/run/a-socket-of-others', place)
  t.match(await call(t, containers), onTcp('NO_RENDEZVOUS', /is no socket/), 'a link to nothing')
  await server.kill()
  unlinkSync(place)
})

t.test('a killed server leaves a name that a client and the next server survive', { skip }, async t => {
  const containers = await serve(t)
  const { near, far, server, name } = containers
  const client = childIn(t, containers, near, neighbour)
  t.match(await client.ask<Wire>({ ask: 'hold', host: far.address, port: PORT } satisfies Question), {
    transport: 'shm',
  })
  await server.kill()
  t.strictSame(await client.receive(), { ended: 'end' }, 'its connections end')
  const left = namesIn(containers)
  t.ok(left.includes(name) && left.length === 2, 'the listener, and where it passed memory')
  const refused = await client.ask<{ error: { code: string } }>({
    ask: 'call',
    host: far.address,
    port: PORT,
  })
  t.match(refused, { error: { code: 'ECONNREFUSED' } }, 'a stale name is no server')
  await serverIn(t, containers)
  t.strictSame(namesIn(containers), [name], 'the next server takes the name over, and sweeps the rest')
  t.match(await call(t, containers), SHARES_MEMORY)
})

t.test('the server is told when a client is killed', { skip }, async t => {
  const containers = await serve(t)
  const { near, far, server } = containers
  const client = childIn(t, containers, near, neighbour)
  await client.ask({ ask: 'hold', host: far.address, port: PORT } satisfies Question)
  await client.kill()
  t.strictSame(await server.receive(), { closed: true })
})

t.test('users: the own one, others that both policies name, and none else', { skip }, async t => {
  const containers = await serve(t, SHARED, { uid: 1000, env: { FASTSOCKETS_USERS: '1001' } })
  t.match(await call(t, containers, { uid: 1000 }), SHARES_MEMORY, 'the same user')
  t.match(
    await call(t, containers, { uid: 1001 }),
    onTcp('OTHER_USER', /belongs to user 1000/),
    'the client does not allow the server',
  )
  const env = { FASTSOCKETS_USERS: '1000' }
  t.match(await call(t, containers, { uid: 1001, env }), SHARES_MEMORY, 'both allow each other')
  const third = await call(t, containers, { uid: 1002, env })
  t.match(third, { transport: 'tcp', echoed: 200_000 }, 'the server does not allow the client')
})

t.test('one server and one client: what is shared, and what is not', { skip }, async t => {
  const containers = makeContainers(t)
  const { near, far, folder } = containers
  const [server, client] = [childIn(t, containers, far, neighbour), childIn(t, containers, near, neighbour)]
  await t.test('a listener on a loopback address is not published', async t => {
    await server.ask({ ask: 'listen', host: '127.0.0.1', port: PORT } satisfies Question)
    t.strictSame(namesIn(containers), [])
  })
  await t.test('raw sockets', async t => {
    await server.ask({ ask: 'raw-listen', host: far.address, port: PORT } satisfies Question)
    const called = await client.ask({ ask: 'raw-call', host: far.address, port: PORT } satisfies Question)
    t.match(called, SHARES_MEMORY)
  })
  await t.test('a unix path in a folder that both have', async t => {
    const path = join(folder, 'app.sock')
    await server.ask({ ask: 'listen', path } satisfies Question)
    const called = await client.ask<Called>({ ask: 'call', path } satisfies Question)
    t.match(called, { ...SHARES_MEMORY, there: { transport: 'shm' } })
  })
  await t.test('a unix path without a fast listener: the reason speaks of paths', async t => {
    const path = join(folder, 'plain.sock')
    const plain = childIn(t, containers, far, neighbour, [], { isPlain: true })
    await plain.ask({ ask: 'listen', path } satisfies Question)
    const called = await client.ask<Called>({ ask: 'call', path } satisfies Question)
    const text = /rendezvous folder has the unix path/
    t.match(called, { transport: 'pipe', reason: { code: 'NOT_RELINKED', text } })
    unlinkSync(path)
  })
  await t.test('a clean exit leaves what it leaves without Fast Sockets', async t => {
    await client.kill()
    server.send({ ask: 'leave' } satisfies Question)
    await server.end()
    t.strictSame(namesIn(containers), ['app.sock'])
  })
})

t.test('connections that have started on TCP move to shared memory', { skip }, async t => {
  const containers = makeContainers(t)
  // A client that finds the name when it connects does not start on TCP.
  const later = join(containers.folder, 'later')
  const env = { FASTSOCKETS_START: 'tcp', FASTSOCKETS_RENDEZVOUS: later }
  const client = childIn(t, containers, containers.near, neighbour, [], { env })
  await client.ask({ ask: 'descriptors' } satisfies Question)
  mkdirSync(later, { mode: 0o700 })
  await serverIn(t, containers, { env })
  const host = containers.far.address
  const moved = await client.ask({ ask: 'move', host, port: PORT, roundTrips: 100_000 } satisfies Question)
  t.strictSame(moved, { first: 'tcp', last: 'shm' })
  const next = await client.ask<Called>({ ask: 'call', host, port: PORT } satisfies Question)
  t.match(next, SHARES_MEMORY, 'the next connection is fast from its first byte')
})

t.test(
  'by default connections to containers of the folder are fast from their first byte',
  { skip },
  async t => {
    const env = { FASTSOCKETS_START: '' }
    const containers = await serve(t, 0o700, { env })
    t.match(await call(t, containers, { env }), SHARES_MEMORY)
    const empty = join(containers.folder, 'empty')
    mkdirSync(empty)
    for (const [folder, text] of [
      ['/nowhere', /does not exist/],
      [empty, /there is no/],
    ] as const) {
      const client = childIn(t, containers, containers.near, neighbour, [], {
        env: { ...env, FASTSOCKETS_RENDEZVOUS: folder },
      })
      t.match(await callFrom(client, containers), onTcp('NO_RENDEZVOUS', text))
      t.strictSame(await client.ask({ ask: 'sockets' } satisfies Question), [], 'and nothing was loaded')
    }
  },
)

t.test(
  'user namespaces: the kernel translates users, and knows some from neither side',
  { skip },
  async t => {
    const mapped = { uid: 100_000, hasUserNamespace: true }
    const containers = await serve(t, SHARED, mapped)
    t.match(await call(t, containers, mapped), SHARES_MEMORY, 'the same user, who is root in both')
    t.match(
      await call(t, containers, { uid: 100_000 }),
      SHARES_MEMORY,
      'the same user, who is root in one and 100000 in the other',
    )
    t.match(
      await call(t, containers, { uid: 200_000, hasUserNamespace: true }),
      onTcp('OTHER_USER', /belongs to user 65534/),
      'root in both, and different users',
    )
    const env = { FASTSOCKETS_USERS: '65534' }
    t.match(
      await call(t, containers, { uid: 200_000, hasUserNamespace: true, env }),
      onTcp('OTHER_USER', /belongs to user 65534/),
      'a policy cannot allow users that have no number',
    )
    t.match(await call(t, containers), onTcp('OTHER_USER', /belongs to user 100000/), 'root of the host')
  },
)

t.test('a folder that is read-only, full, or deleted', { skip }, async t => {
  const readOnly = (folder: string): string => `mount --bind -o ro ${folder} ${folder}`
  const containers = makeContainers(t)
  const { near, far, folder } = containers
  await serverIn(t, containers)
  const before = readOnly(folder)
  t.match(await call(t, containers, { before }), SHARES_MEMORY, 'a client only needs to search it')
  const second = childIn(t, containers, near, neighbour, [], { before })
  await second.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  t.notOk(namesIn(containers).includes(`tcp4-${near.address}-${PORT}`), 'a server publishes nothing')
  const back = childIn(t, containers, far, neighbour)
  const onTheWay: Question = { ask: 'call', host: near.address, port: PORT }
  t.match(await back.ask<Called>(onTheWay), onTcp('NO_RENDEZVOUS', /there is no/))
  const client = childIn(t, containers, near, neighbour)
  t.match(await callFrom(client, containers), SHARES_MEMORY)
  rmSync(folder, { recursive: true })
  t.match(await callFrom(client, containers), SHARES_MEMORY, 'a channel that is open goes on')
  t.match(await call(t, containers), onTcp('NO_RENDEZVOUS', /does not exist/), 'a new client has TCP')
})

t.test('a full folder', { skip }, async t => {
  const containers = makeContainers(t)
  const before = `mount -t tmpfs -o size=4k,nr_inodes=2 full ${containers.folder} && touch ${containers.folder}/x`
  const server = await serverIn(t, containers, { before })
  t.match(await call(t, containers), onTcp('NO_RENDEZVOUS', /there is no/))
  await server.ask({ ask: 'leave' } satisfies Question)
  t.match(await server.end(), { code: 0 }, 'the server has served, and ends well')
})
