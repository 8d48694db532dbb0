/**
 * Either side is killed at every step of the bootstrap, and at stores of a stream. The other side never
 * hangs, keeps nothing, and what it has received is the beginning of what was written.
 */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { STEPS } from '../../fastsockets/host/steps.ts'
import net, { type AddressInfo, type Socket, transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { seededRandom } from '../support/random.ts'
import { relinked } from '../support/relinked.ts'
import { descriptorCount, memfdMappingCount } from '../support/resources.ts'
import { eventually, withWatchdog } from '../support/until.ts'
import type { Told } from './doomed-child.ts'
import { PATTERN_BYTES, PatternReader, PatternWriter } from './pattern.ts'

const fixture = new URL('./doomed-child.js', import.meta.url)
/** After the kernel has reported the death. A busy machine may be late once, but not each time. */
const NOTICE_MAX_MS = 100
const ATTEMPTS = 3
/** The first stores of a stream one by one, and some from all over the rest. */
const FIRST_STORES = 8
const LATER_STORES = 8

type Point = readonly ['step' | 'store' | 'never', string]

/** The survivor's view of one connection: it reads, writes and waits for the end. */
interface View {
  readonly reader: PatternReader
  readonly closed: Promise<number>
}

function watch(socket: Socket): View {
  socket.on('error', () => {})
  const reader = new PatternReader(socket)
  new PatternWriter(socket).write()
  return { reader, closed: new Promise(resolve => socket.once('close', () => resolve(performance.now()))) }
}

/** When it died; undefined if it has come through, because its stream had fewer stores this time. */
function deathOf(child: Child): Promise<number | undefined> {
  const told = child.receive<Told>().then(
    () => undefined,
    () => new Promise<never>(() => {}),
  )
  return Promise.race([once(child.process, 'exit').then(() => performance.now()), told])
}

/** How long after the death of the server its client knew; what came is checked here. */
async function killServer(t: Test, [how, point]: Point): Promise<{ lateMs: number; stores?: number }> {
  const server = new Child(t, fixture, ['server', '', how, point], relinked())
  const { port } = await server.receive<{ port: number }>()
  const died = how === 'never' ? undefined : deathOf(server)
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const view = watch(socket)
  const closedMs = await withWatchdog(`the end after ${how} ${point}`, view.closed)
  checkBytes(t, view)
  if (how === 'never') {
    t.equal(view.reader.position, PATTERN_BYTES)
    const { stores = 0 } = await server.receive<Told>()
    // Its channel would stay as long as it lives.
    await server.kill()
    return { lateMs: 0, stores }
  }
  const diedMs = await withWatchdog('the death', died as Promise<number | undefined>)
  return { lateMs: diedMs === undefined ? 0 : closedMs - diedMs }
}

async function killClient(t: Test, [how, point]: Point): Promise<{ lateMs: number; stores?: number }> {
  const views: View[] = []
  const server = net.createServer({ allowHalfOpen: true }, socket => void views.push(watch(socket)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new Child(t, fixture, ['client', String(port), how, point], relinked())
  if (how === 'never') {
    t.match(await client.receive(), { transport: 'shm' })
    const { stores = 0 } = await client.receive<Told>()
    await views[0]?.closed
    server.close()
    await client.kill()
    return { lateMs: 0, stores }
  }
  if (how === 'store') t.match(await client.receive(), { transport: 'shm' })
  const diedMs = await withWatchdog('the death', deathOf(client))
  // A connection may still come to light of which the client lived to see nothing.
  const closed = new Promise<number>(resolve => server.close(() => resolve(performance.now())))
  const closedMs = await withWatchdog(`the end after ${how} ${point}`, closed)
  for (const view of views) checkBytes(t, view)
  return { lateMs: diedMs === undefined ? 0 : closedMs - diedMs }
}

function checkBytes(t: Test, { reader }: View): void {
  t.equal(reader.wrongAt, -1, `${reader.position} bytes, each in its place`)
}

async function expectTimely(t: Test, kill: typeof killServer, point: Point): Promise<void> {
  let lateMs = Number.POSITIVE_INFINITY
  for (let i = 0; i < ATTEMPTS && lateMs > NOTICE_MAX_MS; i++) lateMs = (await kill(t, point)).lateMs
  t.ok(lateMs <= NOTICE_MAX_MS, `${point.join(' ')}: known after ${lateMs.toFixed(1)} ms`)
}

for (const [side, kill] of [
  ['server', killServer],
  ['client', killClient],
] as const) {
  t.test(`a ${side} killed at each step to a connection, and at the stores of a stream`, async t => {
    // The first connection brings what stays.
    const { stores = 0 } = await kill(t, ['never', ''])
    t.ok(stores > FIRST_STORES, `${stores} stores in a stream`)
    const before = descriptorCount()
    const random = seededRandom(t)
    const own = STEPS.filter(step => !step.startsWith(side === 'server' ? 'client' : 'server'))
    const points: Point[] = own.map(step => ['step', step])
    for (let i = 1; i <= FIRST_STORES; i++) points.push(['store', String(i)])
    for (let i = 0; i < LATER_STORES; i++)
      points.push(['store', String(random.within(FIRST_STORES, stores / 2))])
    for (const point of points) await expectTimely(t, kill, point)
    await eventually('the descriptors to go', () => descriptorCount() <= before)
    await eventually('the shared mappings to go', () => memfdMappingCount() === 0)

    const healthy = new Child(t, fixture, ['server', '', 'never'], relinked())
    const socket = net.connect((await healthy.receive<{ port: number }>()).port, '127.0.0.1')
    const view = watch(socket)
    await withWatchdog('the next connection', view.closed)
    t.equal(transportOf(socket).transport, 'shm')
    t.equal(view.reader.position, PATTERN_BYTES, 'the next is whole')
  })
}
