/**
 * What a hostile container can do that shares the rendezvous folder: the connection is made all the same, over TCP, and nobody else's
 * socket is reached.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import net from 'node:net'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import {
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  type Introduction,
  NO_ID,
  REFUSAL,
  VERSION,
} from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { FaultRandom } from '../../../nic/fault/fault-random.ts'
import { LOCK_EX } from '../../../nic/posix/constants.ts'
import { requireLibc } from '../../../nic/posix/libc.ts'
import { slotName } from '../../../nic/rendezvous/names-layout.ts'
import type { Child } from '../../support/child.ts'
import { type Containers, childIn, makeContainers, namesIn, noContainers } from '../../support/containers.ts'
import { program } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Claim } from '../programs/claiming.ts'
import type { Called, Question } from '../programs/neighbour.ts'

const skip = noContainers()
if (skip) t.comment(`SKIPPED: hostile containers: ${skip}`)
const neighbour = program('neighbour')
const PORT = 8080
const SHARED = 0o1777
const STRANGER = 4242
const PUBLICATIONS = 60
const GARBAGE_CALLERS = 40
/** The route to a server that is not fast is asked for again after so long. */
const KNOWN_MS = 2100

interface Scene extends Containers {
  readonly client: Child
  /** The listener's name in the folder. */
  readonly place: string
}

/** A plain server in the far container, a relinked client in the near one, and a folder in which everybody writes. */
async function scene(t: Test): Promise<Scene> {
  const containers = makeContainers(t, SHARED)
  const { near, far, folder } = containers
  const server = childIn(t, containers, far, neighbour, [], { isPlain: true })
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  const client = childIn(t, containers, near, neighbour)
  return { ...containers, client, place: join(folder, `tcp4-${far.address}-${PORT}`) }
}

function call({ client, far }: Scene): Promise<Called> {
  return client.ask<Called>({ ask: 'call', host: far.address, port: PORT } satisfies Question)
}

/** What a greeting and a HELLO say, of a process that is not there. */
function introduction(port: number): Introduction {
  return {
    version: VERSION,
    port,
    isShared: false,
    isRequired: false,
    endpointId: Buffer.alloc(16, 1),
    hostIdentity: Buffer.alloc(16, 2),
    uid: 0,
    pid: 0,
    door: NO_ID,
    listenerId: NO_ID,
  }
}

const pause = (): Promise<void> => new Promise(resolve => setTimeout(resolve, KNOWN_MS))

/** A socket of this process in the folder; counts who comes. */
async function listenAt(
  t: Test,
  path: string,
  greet: (caller: net.Socket) => void,
): Promise<{ count: number }> {
  const callers = { count: 0 }
  const server = net.createServer(caller => {
    callers.count++
    caller.on('error', () => {})
    greet(caller)
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.teardown(() => void server.close())
  return callers
}

t.test('things at the name of a listener that are no socket of an allowed user', { skip }, async t => {
  const one = await scene(t)
  const { place, folder } = one
  const other = join(folder, 'other.sock')
  const callers = await listenAt(t, other, caller => caller.destroy())
  const plants: [what: string, plant: () => void, reason: object][] = [
    [
      'a link to a socket of others',
      () => symlinkSync(other, place),
      { code: 'NO_RENDEZVOUS', text: /is no socket/ },
    ],
    ['a FIFO', () => void spawnSync('mkfifo', [place]), { code: 'NO_RENDEZVOUS', text: /is no socket/ }],
    ['a file', () => writeFileSync(place, 'x'), { code: 'NO_RENDEZVOUS', text: /is no socket/ }],
    ['a folder', () => mkdirSync(place), { code: 'NO_RENDEZVOUS', text: /is no socket/ }],
    [
      'a socket of another user',
      () => {
        linkSync(other, place)
        chownSync(place, STRANGER, STRANGER)
      },
      { code: 'OTHER_USER', text: /belongs to user 4242/ },
    ],
  ]
  for (const [what, plant, reason] of plants) {
    plant()
    t.match(await call(one), { transport: 'tcp', echoed: 200_000, reason }, what)
    rmSync(place, { recursive: true })
    await pause()
  }
  t.equal(callers.count, 0, 'none of them was connected to')
})

t.test('a socket at the name of a listener that says anything', { skip }, async t => {
  const greeting = introduction(PORT)
  const says: [what: string, greet: (caller: net.Socket) => void][] = [
    ['garbage', caller => caller.write(Buffer.alloc(1 << 16, 0xff))],
    ['goodbye', caller => caller.destroy()],
    [
      'a greeting for another port',
      caller => caller.write(encodeIntroduction(GREETING_MAGIC, introduction(1))),
    ],
    [
      'a greeting, and garbage for an answer',
      caller => {
        caller.write(encodeIntroduction(GREETING_MAGIC, greeting))
        caller.once('data', () => caller.write(Buffer.alloc(1 << 16, 0xff)))
      },
    ],
  ]
  for (const [what, greet] of says) {
    await t.test(what, async t => {
      const one = await scene(t)
      const callers = await listenAt(t, one.place, greet)
      t.match(await call(one), { transport: 'tcp', echoed: 200_000, reason: { code: String } }, 'TCP')
      t.ok(callers.count > 0, 'it was asked')
    })
  }
})

t.test(
  'a publisher to whose sockets anything is said goes on, and holds nothing of it',
  { skip },
  async t => {
    const containers = makeContainers(t)
    const { near, far, folder } = containers
    const place = { host: far.address, port: PORT }
    const server = childIn(t, containers, far, neighbour)
    await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
    // One that is fast makes what all others share.
    const first = childIn(t, containers, near, neighbour)
    await first.ask({ ask: 'hold', ...place } satisfies Question)
    const descriptors = async (): Promise<number> =>
      (await server.ask<{ count: number }>({ ask: 'descriptors' } satisfies Question)).count
    const before = await descriptors()
    const seed = Number(process.env.SEED ?? Date.now() % 1e9)
    t.comment(`SEED=${seed}`)
    const random = new FaultRandom(seed)
    const names = namesIn(containers)
    t.equal(names.length, 2, 'the listener, and where it passes memory')
    for (let i = 0; i < GARBAGE_CALLERS; i++) {
      for (const name of names) {
        const caller = net.connect(join(folder, name)).on('error', () => {})
        const garbage = Buffer.from(
          Array.from({ length: random.within(0, 2000) }, () => random.within(0, 255)),
        )
        // Half of them begin as an honest client would.
        if (random.chance(0.5)) encodeIntroduction(HELLO_MAGIC, introduction(PORT)).copy(garbage)
        const gone = new Promise(resolve => caller.on('close', resolve))
        caller.resume().end(garbage)
        // The others talk while it does.
        if (random.chance(0.5)) await gone
      }
    }
    await eventually('as many descriptors as before', async () => (await descriptors()) <= before)
    const client = childIn(t, containers, near, neighbour)
    t.match(await client.ask<Called>({ ask: 'call', ...place } satisfies Question), {
      transport: 'shm',
      echoed: 200_000,
    })
  },
)

t.test('a publisher is not kept from working by what strangers hold', { skip }, async t => {
  const containers = makeContainers(t, SHARED)
  const { near, far, folder } = containers
  const place = join(folder, `tcp4-${far.address}-${PORT}`)
  const foreign = ['handoff-', 'endpoints-', '.new-'].map(name => join(folder, name + 'a'.repeat(32)))
  for (const path of foreign) symlinkSync('/etc/passwd', path)
  mkdirSync(place)
  chownSync(place, STRANGER, STRANGER)
  const options = { uid: 1000 }
  const server = childIn(t, containers, far, neighbour, [], options)
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  const client = childIn(t, containers, near, neighbour, [], options)
  const question: Question = { ask: 'call', host: far.address, port: PORT }
  t.match(await client.ask<Called>(question), { transport: 'tcp', echoed: 200_000 })
  t.equal(readdirSync(folder).length, 4, 'nothing of others was removed')
  rmSync(place, { recursive: true })
  const late = childIn(t, containers, far, neighbour, [], options)
  await late.ask({ ask: 'listen', host: '0.0.0.0', port: PORT + 1 } satisfies Question)
  const next: Question = { ask: 'call', host: far.address, port: PORT + 1 }
  t.match(await client.ask<Called>(next), { transport: 'shm', echoed: 200_000 })
})

t.test('a publisher does not wait for a lock that a stranger keeps', { skip }, async t => {
  const containers = makeContainers(t, SHARED)
  const { near, far, folder } = containers
  const held = openSync(folder, constants.O_RDONLY)
  t.teardown(() => closeSync(held))
  t.equal(requireLibc().flock(held, LOCK_EX), 0)
  const server = childIn(t, containers, far, neighbour)
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  const client = childIn(t, containers, near, neighbour)
  const question: Question = { ask: 'call', host: far.address, port: PORT }
  t.match(await client.ask<Called>(question), { transport: 'shm', echoed: 200_000 })
})

t.test('slots that a stranger holds are left out by threads that share a listener', { skip }, async t => {
  const containers = makeContainers(t, SHARED)
  const { far, folder } = containers
  const name = `tcp4-${far.address}-${PORT}`
  const slots = [0, 1].map(slot => join(folder, slotName(name, slot)))
  spawnSync('mkfifo', slots)
  for (const slot of slots) chownSync(slot, STRANGER, STRANGER)
  const args = ['cluster', String(PORT)]
  const server = childIn(t, containers, far, program('shared-listener'), args, { uid: 1000 })
  t.strictSame(await server.receive(), { listening: 2 })
  const others = (): string[] =>
    namesIn(containers).filter(one => one.startsWith(name) && !/\.[01]$/.test(one))
  await eventually('a slot for each', () => others().length === 3)
  t.strictSame(others(), [name, slotName(name, 2), slotName(name, 3)])
})

t.test(
  'the owner of the folder replaces a socket by a link while it is published: the publisher changes no other file',
  { skip },
  async t => {
    const containers = makeContainers(t, 0o777)
    const { far, folder } = containers
    const secret = join(folder, 'secret')
    writeFileSync(secret, 'x')
    chmodSync(secret, 0o640)
    const env = { FASTSOCKETS_USERS: String(STRANGER) }
    const server = childIn(t, containers, far, neighbour, [], { env })
    let replaced = 0
    // On a busy machine none may be replaced at first.
    for (let i = 0; i < PUBLICATIONS || (replaced === 0 && i < 20 * PUBLICATIONS); i++) {
      let isOver = false
      const question: Question = { ask: 'relisten', host: '0.0.0.0', port: PORT }
      const relistened = server.ask(question).then(() => {
        isOver = true
      })
      while (!isOver) {
        for (let look = 0; look < 50; look++)
          for (const name of readdirSync(folder))
            if (name.startsWith('.new-')) replaced += plant(secret, name)
        await new Promise(resolve => setImmediate(resolve))
      }
      await relistened
    }
    t.comment(`${replaced} replaced`)
    t.ok(replaced > 0)
    t.equal(statSync(secret).mode & 0o777, 0o640, 'its mode is what it was')
  },
)

/** Replaces the name by a link beside the file that it leads to; 0 if it has gone. */
function plant(file: string, name: string): number {
  const link = `${file}-link`
  symlinkSync(file, link)
  renameSync(link, join(dirname(file), name))
  return 1
}

t.test('a name for the socket of an honest listener that is elsewhere', { skip }, async t => {
  const containers = makeContainers(t, SHARED)
  const { near, far, folder } = containers
  const other = far.address.replace(/\d+$/, '77')
  spawnSync('ip', ['-n', far.namespace, 'addr', 'add', `${other}/24`, 'dev', far.device])
  const honest = childIn(t, containers, far, neighbour)
  await honest.ask({ ask: 'listen', host: far.address, port: PORT } satisfies Question)
  const called = childIn(t, containers, far, neighbour, [], { isPlain: true })
  await called.ask({ ask: 'listen', host: other, port: PORT } satisfies Question)
  linkSync(join(folder, `tcp4-${far.address}-${PORT}`), join(folder, `tcp4-${other}-${PORT}`))
  const client = childIn(t, containers, near, neighbour)
  const answer = await client.ask<Called>({ ask: 'call', host: other, port: PORT } satisfies Question)
  const expected = { transport: 'tcp', echoed: 200_000, reason: { code: 'NOT_LISTENING' } }
  t.match(
    answer,
    { ...expected, there: { local: other } },
    'the client reaches the server that it has called',
  )
})

t.test('a container gets no connection whose client is in the container of the server', { skip }, async t => {
  const containers = makeContainers(t)
  const { near, far, folder } = containers
  const path = join(folder, 'app.sock')
  const claimer = childIn(t, containers, near, program('claiming'), ['claimer'], { isPlain: true })
  for (const [what, place, reached] of [
    ['on loopback', { host: '127.0.0.1', port: PORT }, { host: far.address, port: PORT }],
    ['at its own address', { host: far.address, port: PORT }, { host: far.address, port: PORT }],
    ['over a path', { path }, { host: path, port: 0 }],
  ] as const) {
    const server = childIn(t, containers, far, neighbour)
    const listening = 'path' in place ? place : { host: '0.0.0.0', port: PORT }
    await server.ask({ ask: 'listen', ...listening } satisfies Question)
    const owner = childIn(t, containers, far, program('claiming'), ['owner', JSON.stringify(place)], {
      isPlain: true,
    })
    const { name } = await owner.receive<{ name: string }>()
    t.strictSame(
      await claimer.ask({ ...reached, name } satisfies Claim),
      { outcome: `refused: ${REFUSAL.NOT_LISTENING}` },
      what,
    )
    await Promise.all([owner.kill(), server.kill()])
  }
})

t.test('listeners are replaced while clients call', { skip }, async t => {
  const containers = makeContainers(t)
  const { near, far } = containers
  const place = { host: far.address, port: PORT }
  const server = childIn(t, containers, far, neighbour)
  const clients = [childIn(t, containers, near, neighbour), childIn(t, containers, near, neighbour)]
  await server.ask({ ask: 'relisten', host: '0.0.0.0', port: PORT } satisfies Question)
  const callAll = (): Promise<Record<string, number>[]> =>
    Promise.all(
      clients.map(client => client.ask<Record<string, number>>({ ask: 'connects', ...place, count: 4 })),
    )
  const seen = new Set<string>()
  for (let i = 0; i < 200; i++) {
    const relistened = server.ask({ ask: 'relisten', host: '0.0.0.0', port: PORT } satisfies Question)
    const [wires] = await Promise.all([callAll(), relistened])
    for (const wire of wires.flatMap(Object.keys)) seen.add(wire)
  }
  const asTcp = /^(shm|ECONNRESET|ECONNREFUSED|N\w+: .*)$/
  t.ok(seen.has('shm') && [...seen].every(wire => asTcp.test(wire)), [...seen].join('; '))
  await pause()
  t.strictSame(await callAll(), [{ shm: 4 }, { shm: 4 }], 'then all are fast')
  t.equal(namesIn(containers).length, 2, 'the listener, and where it passes memory')
})

t.test('a listener that is replaced all the time is always found', { skip }, async t => {
  const containers = makeContainers(t)
  const { near, far } = containers
  const server = childIn(t, containers, far, neighbour)
  const client = childIn(t, containers, near, neighbour)
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  const before = await server.ask<{ count: number }>({ ask: 'descriptors' })
  for (let i = 0; i < 20; i++) {
    await server.ask({ ask: 'relisten', host: '0.0.0.0', port: PORT } satisfies Question)
    const called = await client.ask<Called>({
      ask: 'connects',
      host: far.address,
      port: PORT,
      count: 5,
    } satisfies Question)
    t.strictSame(called, { shm: 5 }, `after ${i + 1} replacements`)
  }
  const after = await server.ask<{ count: number }>({ ask: 'descriptors' })
  t.ok(after.count <= before.count + 8, `${before.count} descriptors before, ${after.count} after`)
  t.equal(namesIn(containers).length, 2, 'the listener, and where it passes memory')
})
