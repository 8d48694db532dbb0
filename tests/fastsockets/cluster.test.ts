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

/** A connection whose worker has said who it is; it stays open until the test ends. */
async function connect(t: Test, to: number | string): Promise<{ socket: Socket; told: Told }> {
  const socket = typeof to === 'string' ? net.connect(to) : net.connect(to, '127.0.0.1')
  t.teardown(() => void socket.destroy())
  socket.write('who')
  const [data] = (await once(socket, 'data')) as [Buffer]
  return { socket, told: JSON.parse(String(data)) as Told }
}

/** How many connections each worker has got. */
function spreadOf(all: readonly { told: Told }[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const { told } of all) counts.set(told.pid, (counts.get(told.pid) ?? 0) + 1)
  return counts
}

async function connectMany(t: Test, to: number | string, count: number): Promise<Map<number, number>> {
  const all = []
  for (let i = 0; i < count; i++) all.push(await connect(t, to))
  t.ok(
    all.every(({ told, socket }) => told.transport === 'shm' && transportOf(socket).transport === 'shm'),
    'all are fast',
  )
  return spreadOf(all)
}

for (const policy of ['rr', 'none']) {
  t.test(`${policy}: one after the other, connections reach all workers in equal numbers`, async t => {
    const { port, pids } = await startCluster(t, [0, 3, policy])
    const counts = await connectMany(t, port, 30)
    t.ok([...counts.keys()].every(pid => pids.includes(pid)))
    if (policy === 'none') return t.ok(counts.size >= 1, `${[...counts.values()]}`)
    t.same(
      [...counts.values()].map(count => Math.abs(count - 10) <= 2),
      [true, true, true],
      `${[...counts.values()]}`,
    )
  })
}

t.test('many connections at once are spread, too', async t => {
  const { port } = await startCluster(t, [0, 3])
  const all = await Promise.all(Array.from({ length: 30 }, () => connect(t, port)))
  const counts = [...spreadOf(all).values()]
  t.ok(all.every(({ told }) => told.transport === 'shm'))
  t.equal(counts.length, 3)
  t.ok(
    counts.every(count => Math.abs(count - 10) <= 3),
    `${counts}`,
  )
})

t.test('a worker that is killed is left out, and the one that takes its place is found', async t => {
  const { primary, port, pids } = await startCluster(t, [await freePort(), 2])
  const [first] = await Promise.all([connect(t, port), connect(t, port), connect(t, port)])
  const closed = once(first.socket, 'close')
  first.socket.on('error', () => {})
  await primary.ask({ kill: first.told.pid })
  await closed
  const left = pids.filter(pid => pid !== first.told.pid)
  t.same([...(await connectMany(t, port, 4)).keys()], left)
  const { pid } = await primary.ask<{ pid: number }>({ fork: true })
  await eventually('the new worker', async () => (await connect(t, port)).told.pid === pid)
})

t.test('a worker that disconnects ends when its fast connections have, and gets no more', async t => {
  const { primary, port, pids } = await startCluster(t, [0, 2])
  const { socket, told } = await connect(t, port)
  primary.send({ disconnect: told.pid })
  const other = pids.filter(pid => pid !== told.pid)
  await eventually('the other worker only', async () => {
    const counts = await connectMany(t, port, 4)
    return [...counts.keys()].join() === other.join()
  })
  socket.end()
  t.same(await primary.receive(), { code: 0, signal: null })
})

t.test('http: a request with a connection each goes to one worker after the other', async t => {
  const { port, pids } = await startCluster(t, [0, 2, 'rr', 'http'])
  const seen = new Set<number>()
  for (let i = 0; i < 6; i++) {
    const [response] = await once(http.get({ port, host: '127.0.0.1', agent: false }), 'response')
    const told = JSON.parse(String((await response.toArray()).join(''))) as Told
    t.equal(told.transport, 'shm')
    seen.add(told.pid)
  }
  t.same([...seen].sort(), [...pids].sort())
})

t.test('clients that are not relinked are served over TCP, by all workers', async t => {
  const { port } = await startCluster(t, [0, 2])
  const seen = new Map<number, string>()
  for (let i = 0; i < 8; i++) {
    const socket = new nodeNet.Socket()
    markOwn(socket)
    socket.connect(port, '127.0.0.1').write('who')
    const [data] = (await once(socket, 'data')) as [Buffer]
    const { pid, transport } = JSON.parse(String(data)) as Told
    seen.set(pid, transport)
    socket.destroy()
  }
  t.same([...seen.values()], ['tcp', 'tcp'])
})

t.test('the primary need not be relinked', async t => {
  const { port } = await startCluster(t, [0, 2, 'rr', 'net', 0, REGISTER.href], {})
  t.equal((await connectMany(t, port, 6)).size, 2)
})

t.test('a unix path', async t => {
  const path = join(t.testdir(), 'socket')
  await startCluster(t, [path, 2])
  t.equal((await connectMany(t, path, 6)).size, 2)
})

t.test('a worker that has as many connections as it wants leaves the next to another', async t => {
  const { port } = await startCluster(t, [0, 2, 'rr', 'net', 2])
  t.same([...(await connectMany(t, port, 4)).values()], [2, 2])
})
