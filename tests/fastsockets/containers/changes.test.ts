/** What changes under a listener that the rendezvous folder has: its addresses, the folder, the threads that share it. */
import { spawnSync } from 'node:child_process'
import { lstatSync, mkdirSync, renameSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  type Containers,
  childIn,
  leaveName,
  makeContainers,
  namesIn,
  noContainers,
} from '../../support/containers.ts'
import { program } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Called, Question } from '../programs/neighbour.ts'

const skip = noContainers()
if (skip) t.comment(`SKIPPED: changes under listeners of containers: ${skip}`)
const neighbour = program('neighbour')
const PORT = 8080
const SHARES_MEMORY = { transport: 'shm', echoed: 200_000 }
/** More than the threads that share a listener: each is met. */
const CALLS = 40

const onPort = (address: string): string => `tcp4-${address}-${PORT}`

/** What a new client in the near container gets at that address. */
async function call(t: Test, containers: Containers, host = containers.far.address): Promise<Called> {
  const client = childIn(t, containers, containers.near, neighbour)
  const called = await client.ask<Called>({ ask: 'call', host, port: PORT } satisfies Question)
  await client.kill()
  return called
}

t.test(
  'an address that comes and goes, and a folder that is emptied, or deleted and made again',
  { skip },
  async t => {
    const containers = makeContainers(t)
    const { far, folder } = containers
    const server = childIn(t, containers, far, neighbour)
    await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
    const name = onPort(far.address)
    t.strictSame(namesIn(containers), [name])
    const later = far.address.replace(/\d+$/, '77')
    spawnSync('ip', ['-n', far.namespace, 'addr', 'add', `${later}/24`, 'dev', far.device])
    const both = [name, onPort(later)]
    const isWhole = (): boolean => both.every(one => namesIn(containers).includes(one))
    await eventually('the name of the later address', isWhole)
    t.match(await call(t, containers, later), { ...SHARES_MEMORY, remote: later })
    for (const one of namesIn(containers)) unlinkSync(join(folder, one))
    await eventually('the names in the folder that was emptied', isWhole)
    t.match(await call(t, containers), SHARES_MEMORY)
    rmSync(folder, { recursive: true })
    mkdirSync(folder, { mode: 0o700 })
    await eventually('the names in the folder that was made again', isWhole)
    t.match(await call(t, containers), SHARES_MEMORY)
    spawnSync('ip', ['-n', far.namespace, 'addr', 'del', `${later}/24`, 'dev', far.device])
    await eventually(
      'the end of the name of an address that has gone',
      () => !namesIn(containers).includes(onPort(later)),
    )
    t.match(await call(t, containers), SHARES_MEMORY)
    await server.ask({ ask: 'leave' } satisfies Question)
    await server.end()
    t.strictSame(namesIn(containers), [], 'a clean exit leaves no name')
  },
)

t.test('a folder that is made after its listener', { skip }, async t => {
  for (const start of ['fast', '']) {
    await t.test(start || 'by default', async t => {
      const containers = makeContainers(t)
      const { near, far } = containers
      const folder = join(containers.folder, 'later')
      const env = { FASTSOCKETS_RENDEZVOUS: folder, FASTSOCKETS_START: start }
      const server = childIn(t, containers, far, neighbour, [], { env })
      await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
      const before = join(containers.folder, 'before')
      mkdirSync(before, { mode: 0o700 })
      await leaveName(join(before, onPort(far.address)))
      const { mtimeMs } = lstatSync(join(before, onPort(far.address)))
      renameSync(before, folder)
      const name = join(folder, onPort(far.address))
      const client = childIn(t, containers, near, neighbour, [], { env })
      const place = { host: far.address, port: PORT }
      if (start === 'fast') {
        await eventually('the name of the listener', () => {
          const found = lstatSync(name, { throwIfNoEntry: false })
          return found !== undefined && found.mtimeMs > mtimeMs
        })
      } else {
        const moved = await client.ask({ ask: 'move', ...place, roundTrips: 200_000 } satisfies Question)
        t.strictSame(moved, { first: 'tcp', last: 'shm' })
      }
      t.match(await client.ask<Called>({ ask: 'call', ...place } satisfies Question), SHARES_MEMORY)
    })
  }
})

t.test(
  'a server that changes its user and may no longer look into the folder keeps its connections',
  { skip },
  async t => {
    const containers = makeContainers(t)
    const { near, far } = containers
    const env = { DEBUG: 'fastsockets:rendezvous' }
    const server = childIn(t, containers, far, neighbour, [], { env })
    await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
    const client = childIn(t, containers, near, neighbour)
    const question: Question = { ask: 'hold', host: far.address, port: PORT }
    t.match(await client.ask(question), { transport: 'shm' })
    await server.ask({ ask: 'become', uid: 1000 } satisfies Question)
    await eventually('two looks that fail', () => server.stderr.split('EACCES').length > 2)
    t.match(await client.ask({ ask: 'sockets' } satisfies Question), [{ transport: 'shm', role: 'client' }])
    t.match(await call(t, containers), { transport: 'tcp' }, 'a new client of another user has TCP')
    await server.receive()
    await server.ask({ ask: 'leave' } satisfies Question)
    t.strictSame(await server.end(), { code: 0, signal: null })
  },
)

t.test('a name that another listener has taken stays with it', { skip }, async t => {
  const containers = makeContainers(t)
  const { far } = containers
  const server = childIn(t, containers, far, neighbour)
  const question: Question = { ask: 'listen', host: '0.0.0.0', port: PORT }
  await server.ask(question)
  // Containers whose addresses overlap.
  const other = makeContainers(t)
  const poser = childIn(t, containers, other.far, neighbour)
  spawnSync('ip', ['-n', other.far.namespace, 'addr', 'add', `${far.address}/24`, 'dev', other.far.device])
  await poser.ask(question)
  const left = namesIn(containers)
  await poser.kill()
  unlinkSync(join(containers.folder, onPort(far.address)))
  await eventually('the name of the first', () => namesIn(containers).includes(onPort(far.address)))
  t.ok(left.includes(onPort(far.address)))
  t.match(await call(t, containers), SHARES_MEMORY)
})

const kinds: [kind: string, threads: number, skip: string | false][] = [
  ['cluster', 2, skip],
  ['reusePort', 2, skip || (Number.parseInt(process.versions.node, 10) < 23 && 'this Node has no reusePort')],
  ['thread', 1, skip],
]
for (const [kind, threads, skip] of kinds) {
  t.test(`a listener of a ${kind}: all its threads are reached`, { skip }, async t => {
    const containers = makeContainers(t)
    const { near, far } = containers
    const server = childIn(t, containers, far, program('shared-listener'), [kind, String(PORT)])
    t.strictSame(await server.receive(), { listening: threads })
    const client = childIn(t, containers, near, neighbour)
    const question: Question = { ask: 'meet', host: far.address, port: PORT, count: CALLS }
    const met = Object.entries(await client.ask<Record<string, number>>(question))
    t.equal(met.length, threads, 'each has served')
    t.ok(
      met.every(([said, count]) => said.endsWith(' shm') && count >= CALLS / 10),
      `by shared memory, and none is left out: ${JSON.stringify(met)}`,
    )
    t.strictSame(await server.ask({ kill: true }), { killed: 1 })
    if (threads === 1) {
      const isGone = (): boolean => !namesIn(containers).includes(onPort(far.address))
      await eventually('the end of the name of a worker that is terminated', isGone)
      const second = childIn(t, containers, far, program('shared-listener'), [kind, String(PORT)])
      await second.receive()
      t.ok(namesIn(containers).includes(onPort(far.address)))
      second.send({ leave: true })
      await second.end()
      t.ok(isGone(), 'the end of a process with a worker leaves none')
      return
    }
    const then = Object.keys(await client.ask<object>(question))
    t.equal(then.length, 1, 'the other one goes on')
    t.match(then[0], / shm$/)
  })
}
