/** Endpoints in two containers of one host that share a rendezvous folder. */
import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { EndpointOptions, EndpointStats } from '../../am/index.ts'
import type { Child } from '../support/child.ts'
import {
  type ContainerOptions,
  type Containers,
  childIn,
  makeContainers,
  namesIn,
  noContainers,
} from '../support/containers.ts'
import { Named } from '../support/named.ts'
import type { Host } from '../support/two-hosts.ts'
import { eventually } from '../support/until.ts'
import type { Produced, Question, Report } from './endpoint-questions.ts'

/** Place of the thread among the parts of an endpoint's name. */
const THREAD = 2
const fixture = new URL('./endpoint-child.js', import.meta.url)
const skip = noContainers()
if (skip) t.comment(`SKIPPED: endpoints in two containers: ${skip}`)

interface Side {
  readonly child: Child
  readonly name: string
  ask<A>(question: Question): Promise<A>
}

async function open(
  t: Test,
  containers: Containers,
  host: Host,
  options: ContainerOptions = {},
  endpoint: EndpointOptions = {},
): Promise<Side> {
  const child = childIn(t, containers, host, fixture, ['all'], { isPlain: true, ...options })
  const ask = async <A>(question: Question): Promise<A> => {
    const answer = await child.ask<A & { error?: object }>(question)
    if (answer.error !== undefined) throw Object.assign(new Error(), answer.error)
    return answer
  }
  const { name } = await ask<{ name: string }>({ ask: 'open', options: endpoint })
  return { child, name, ask }
}

t.test('endpoints share memory, both ways, and the death of one is known at once', { skip }, async t => {
  const containers = makeContainers(t)
  const server = await open(t, containers, containers.far)
  const client = await open(t, containers, containers.near)
  await client.ask({ ask: 'map', destination: 0, name: server.name })
  t.match(await client.ask({ ask: 'call', destination: 0, words: [1, 2] }), { words: [1, 2] })
  const { peers } = await client.ask<EndpointStats>({ ask: 'stats' })
  t.match(peers, [{ driver: 'shm', state: 'open' }])
  await server.ask({ ask: 'map', destination: 0, name: client.name })
  for (const { child } of [client, server])
    child.send({ ask: 'flood', destination: 0, count: 500, size: 64 * 1024 } satisfies Question)
  for (const { child } of [client, server]) await child.receive()
  for (const side of [client, server])
    t.match(await side.ask<Report>({ ask: 'report' }), { wrong: 0, returned: 0, answered: 500 })
  await server.child.kill()
  await eventually('the death', async () => {
    const { peers } = await client.ask<EndpointStats>({ ask: 'stats' })
    return peers[0]?.state === 'gone'
  })
  const produced = await client.ask<Produced>({ ask: 'produce', destination: 0, count: 5, size: 10 })
  t.match(produced, { returned: 5, outstanding: 0 })
  const again = await open(t, containers, containers.near)
  await t.rejects(again.ask({ ask: 'map', destination: 0, name: server.name }), {
    // The name is still there if no publisher has swept it yet.
    code: /^ERR_AM_(UNREACHABLE|NO_SUCH_ENDPOINT)$/,
    message: /there is no .*endpoints-|its thread or process has ended/,
  })
  const isLeft = (name: string): boolean => name.startsWith('endpoints-')
  await eventually('the sweep of the killed one', () => namesIn(containers).filter(isLeft).length === 2)
})

t.test(
  'a name that one container has registered leads there from the other one, also after the folder was emptied',
  { skip },
  async t => {
    const named = new Named(t)
    await named.up()
    const env = { FASTSOCKETS_NAMES: named.address }
    const containers = makeContainers(t)
    const name = 'services/neighbour'
    const server = await open(t, containers, containers.far, { env }, { name })
    const client = await open(t, containers, containers.near, { env })
    await client.ask({ ask: 'map', destination: 0, name })
    t.match(await client.ask({ ask: 'call', destination: 0, words: [3, 4] }), { words: [3, 4] })
    const { peers } = await client.ask<EndpointStats>({ ask: 'stats' })
    t.match(peers, [{ driver: 'shm', state: 'open' }])
    for (const one of namesIn(containers)) unlinkSync(join(containers.folder, one))
    const own = `endpoints-${server.name.split('-').at(THREAD)}`
    await eventually('the name of the server', () => namesIn(containers).includes(own))
    const late = await open(t, containers, containers.near, { env })
    await late.ask({ ask: 'map', destination: 0, name })
    t.match(await late.ask({ ask: 'call', destination: 0, words: [5] }), { words: [5, 0] })
  },
)

t.test('without a folder in common an endpoint says what is missing', { skip }, async t => {
  const containers = makeContainers(t)
  const server = await open(t, containers, containers.far)
  const env = { FASTSOCKETS_RENDEZVOUS: '/nowhere/at/all' }
  const client = await open(t, containers, containers.near, { env })
  await t.rejects(client.ask({ ask: 'map', destination: 0, name: server.name }), {
    code: 'ERR_AM_UNREACHABLE',
    message: /another network namespace, and the rendezvous folder \/nowhere\/at\/all does not exist/,
  })
})
