/** Clusters: every worker is reached by the fast way, and connections are spread over them. */
import { once } from 'node:events'
import http from 'node:http'
import nodeNet from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import net, { type Socket, transportOf } from '../../fastsockets/index.ts'
import { markOwn } from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { freePort } from '../support/ports.ts'
import { program, REGISTER, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

interface Started {
  readonly primary: Child
  readonly port: number
  readonly pids: number[]
}

interface Told {
  readonly pid: number
  /** As the worker sees it. */
  readonly transport: string
}

async function startCluster(
  t: Test,
  args: readonly (string | number)[],
  options = relinked(),
): Promise<Started> {
  const primary = new Child(t, program('cluster-server'), args.map(String), options)
  const { port, pids } = await primary.receive<{ port: number; pids: number[] }>()
  return { primary, port, pids }
}

interface Connection {
  readonly socket: Socket
  readonly told: Told
}

/** A connection whose worker has sent its process id; it stays open until the test ends. */
async function connect(t: Test, to: number | string): Promise<Connection> {
  const socket = typeof to === 'string' ? net.connect(to) : net.connect(to, '127.0.0.1')
  t.teardown(() => void socket.destroy())
  socket.write('who')
  const [data] = (await once(socket, 'data')) as [Buffer]
  return { socket, told: JSON.parse(String(data)) as Told }
}

/** How many connections each worker has got. */
function spreadOf(all: readonly Connection[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const { told } of all) counts.set(told.pid, (counts.get(told.pid) ?? 0) + 1)
  return counts
}

/** Connects until as many workers have answered, by the fast way: on a busy machine the first calls may be answered late. */
async function meetAll(t: Test, to: number | string, count: number): Promise<Connection[]> {
  const all: Connection[] = []
  await eventually(`${count} workers`, async () => {
    const one = await connect(t, to)
    if (one.told.transport === 'shm') all.push(one)
    return spreadOf(all).size === count
  })
  return all
}

async function connectMany(t: Test, to: number | string, count: number): Promise<Connection[]> {
  const all = []
  for (let i = 0; i < count; i++) all.push(await connect(t, to))
  t.ok(
    all.every(({ told, socket }) => told.transport === 'shm' && transportOf(socket).transport === 'shm'),
    'all are fast',
  )
  return all
}

/** That no worker has many more than another. */
function isEven(t: Test, all: readonly Connection[]): void {
  const counts = [...spreadOf(all).values()]
  t.ok(Math.max(...counts) - Math.min(...counts) <= 2, `${counts}`)
}

t.test('none: where the kernel schedules, the fast way is had, too', async t => {
  const { port, pids } = await startCluster(t, [0, 2, 'none'])
  await meetAll(t, port, 1)
  const counts = spreadOf(await connectMany(t, port, 10))
  t.ok([...counts.keys()].every(pid => pids.includes(pid)))
})

t.test('rr: one port, three workers', async t => {
  const { primary, port, pids } = await startCluster(t, [await freePort(), 3])
  const met = await meetAll(t, port, 3)
  t.same([...spreadOf(met).keys()].sort(), [...pids].sort())

  await t.test('one after the other, connections are spread evenly', async t => {
    met.push(...(await connectMany(t, port, 30)))
    isEven(t, met)
  })

  await t.test('many at once are spread, too', async t => {
    const all = await Promise.all(Array.from({ length: 30 }, () => connect(t, port)))
    t.ok(all.every(({ told }) => told.transport === 'shm'))
    isEven(t, [...met, ...all])
    const ports = all.map(({ socket }) => socket.localPort)
    t.equal(new Set(ports).size, ports.length, 'each has a port of its own')
  })

  await t.test('clients that are not relinked are served over TCP, by all workers', async t => {
    const seen = new Map<number, string>()
    for (let i = 0; i < 12; i++) {
      const socket = new nodeNet.Socket()
      markOwn(socket)
      socket.connect(port, '127.0.0.1').write('who')
      const [data] = (await once(socket, 'data')) as [Buffer]
      const { pid, transport } = JSON.parse(String(data)) as Told
      seen.set(pid, transport)
      socket.destroy()
    }
    t.same([...seen.values()], ['tcp', 'tcp', 'tcp'])
  })

  await t.test('a worker that disconnects ends when its fast connections have, and gets no more', async t => {
    for (const { socket } of met) socket.destroy()
    const { socket, told } = await connect(t, port)
    primary.send({ disconnect: told.pid })
    await eventually(
      'the other workers only',
      async () => !spreadOf(await connectMany(t, port, 6)).has(told.pid),
    )
    socket.end()
    t.same(await primary.receive(), { code: 0, signal: null })
  })

  await t.test('a worker that is killed is left out, and the one that takes its place is found', async t => {
    const { socket, told } = await connect(t, port)
    const closed = once(socket, 'close')
    socket.on('error', () => {})
    await primary.ask({ kill: told.pid })
    await closed
    t.notOk(spreadOf(await connectMany(t, port, 4)).has(told.pid))
    const { pid } = await primary.ask<{ pid: number }>({ fork: true })
    await eventually('the new worker', async () => (await connect(t, port)).told.pid === pid)
  })
})

t.test('http: requests with a connection each reach all workers', async t => {
  const { port, pids } = await startCluster(t, [0, 2, 'rr', 'http'])
  const seen = new Set<number>()
  await eventually('all workers', async () => {
    const [response] = await once(http.get({ port, host: '127.0.0.1', agent: false }), 'response')
    const told = JSON.parse(String((await response.toArray()).join(''))) as Told
    if (told.transport === 'shm') seen.add(told.pid)
    return seen.size === pids.length
  })
})

t.test('the primary need not be relinked', async t => {
  const { port } = await startCluster(t, [0, 2, 'rr', 'net', 0, REGISTER.href], {})
  await meetAll(t, port, 2)
})

t.test('a unix path', async t => {
  const path = join(t.testdir(), 'socket')
  await startCluster(t, [path, 2])
  await meetAll(t, path, 2)
})

t.test('a worker that has as many connections as it wants leaves the next to another', async t => {
  const { port } = await startCluster(t, [0, 2, 'rr', 'net', 3])
  const all = await meetAll(t, port, 2)
  while (all.length < 6) all.push(await connect(t, port))
  t.same([...spreadOf(all).values()], [3, 3])
})

t.test('a worker that leaves before its primary has answered does the primary no harm', async t => {
  for (const how of ['exit', 'disconnect', 'kill']) {
    const primary = new Child(t, program('leaving-worker'), [how], relinked())
    t.strictSame(await primary.receive(), { questions: 2, errors: [] }, how)
  }
})

t.test('nor to a primary that is not relinked, if it disconnects', async t => {
  const workerArgv = JSON.stringify(relinked().execArgv)
  const primary = new Child(t, program('leaving-worker'), ['disconnect', workerArgv])
  t.strictSame(await primary.receive(), { questions: 2, errors: [] })
})
