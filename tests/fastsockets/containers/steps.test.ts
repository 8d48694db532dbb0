/** What people and programs learn of connections between containers, and what killed processes leave. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { type Child, plainEnvironment } from '../../support/child.ts'
import { type Containers, childIn, makeContainers, namesIn, noContainers } from '../../support/containers.ts'
import { program } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Called, Question, Wire } from '../programs/neighbour.ts'

const skip = noContainers()
if (skip) t.comment(`SKIPPED: status, explain and kills between containers: ${skip}`)
const neighbour = program('neighbour')
const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))
const PORT = 8080
/** In CI; 1,000 for a full run. */
const KILLS = Number(process.env.FASTSOCKETS_TEST_KILLS ?? 5)

interface Served extends Containers {
  readonly server: Child
}

async function serve(t: Test, env: NodeJS.ProcessEnv = {}): Promise<Served> {
  const containers = makeContainers(t, 0o1777)
  const server = childIn(t, containers, containers.far, neighbour, [], { env })
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  return { ...containers, server }
}

t.test(
  'status inside each container names the other one, its user, and copies for ZCopy',
  { skip },
  async t => {
    const env = { FASTSOCKETS_ZCOPY_THRESHOLD: '65536' }
    const containers = await serve(t, env)
    const { near, far, server } = containers
    const client = childIn(t, containers, near, neighbour, [], { env })
    const question: Question = { ask: 'hold', host: far.address, port: PORT }
    t.match(await client.ask<Wire>(question), { transport: 'shm' })
    for (const [child, role] of [
      [client, 'client'],
      [server, 'server'],
    ] as const) {
      const sockets = await child.ask<object[]>({ ask: 'sockets' } satisfies Question)
      const expected = { transport: 'shm', role, container: { uid: 0 }, zcopy: 'refused' }
      t.match(sockets, [expected], role)
      t.notOk(
        sockets.some(socket => 'peer' in socket),
        'no process number of the other container',
      )
    }
  },
)

t.test('the commands inside a container', { skip }, async t => {
  const { near, far, folder } = await serve(t)
  const server = `${far.address}:${PORT}`
  const run = (args: string[], at: string): SpawnSyncReturns<string> =>
    spawnSync('ip', ['netns', 'exec', near.namespace, process.execPath, CLI, ...args], {
      encoding: 'utf8',
      env: { ...plainEnvironment(), FASTSOCKETS_RENDEZVOUS: at, FASTSOCKETS_START: 'fast' },
    })
  t.match(run(['explain', server], folder).stdout, /shm/, 'it would be fast')
  const doctor = run(['doctor', server], '/nowhere')
  t.match(doctor.stdout, /NO_RENDEZVOUS: .*the rendezvous folder \/nowhere does not exist/)
  t.match(doctor.stdout, /docs\/guide\/containers\.md/, 'and what to do')
})

t.test('listeners that are killed leave nothing that the next one does not remove', { skip }, async t => {
  const containers = makeContainers(t)
  const { near, far } = containers
  // On a busy machine a greeting takes longer than a client waits by default.
  const env = { FASTSOCKETS_GREETING_TIMEOUT_MS: '2000' }
  const client = childIn(t, containers, near, neighbour, [], { env })
  const question: Question = { ask: 'call', host: far.address, port: PORT }
  const countsOf = (): Promise<{ count: number; mappings: number }> => client.ask({ ask: 'descriptors' })
  let before: { count: number; mappings: number } | undefined
  for (let i = 0; i < KILLS; i++) {
    const server = childIn(t, containers, far, neighbour)
    await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
    const called = await client.ask<Called>(question)
    const what = `server ${i + 1}: ${called.reason?.text ?? 'fast'}`
    t.match(called, { transport: 'shm', echoed: 200_000 }, what)
    await server.kill()
    await eventually('the end of its channel', async () => {
      const now = await countsOf()
      before ??= now
      return now.count <= before.count + 1 && now.mappings <= before.mappings + 1
    })
  }
  const last = childIn(t, containers, far, neighbour)
  await last.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  const name = `tcp4-${far.address}-${PORT}`
  // A sweep that takes long goes on in later turns.
  await eventually('one name, of the listener that lives', () => String(namesIn(containers)) === name)
})
