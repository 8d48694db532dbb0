/** Listeners that share a port by `reusePort`: each is met, over TCP and by the fast way. */
import type { ForkOptions } from 'node:child_process'
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { SHARED_PORTS, testIf } from '../support/newer-node.ts'
import { freePort } from '../support/ports.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

const CLIENTS = 4
const CONNECTIONS = 25

interface Told {
  readonly who: string
  /** As the server sees it. */
  readonly transport: string
}

/** All listeners of a port must have the same hashed port: clients look no further than the first that answers. */
async function serve(t: Test, port: number, count: number, kind = 'process'): Promise<Child[]> {
  const servers: Child[] = []
  const hashedPorts: number[] = []
  for (let left = kind === 'process' ? count : 1; left > 0; left--) {
    const each = kind === 'process' ? 1 : count
    const server = new Child(t, program('shared-port-server'), [port, each, kind].map(String), relinked())
    hashedPorts.push(...(await server.receive<number[]>()))
    servers.push(server)
  }
  t.equal(hashedPorts.length, count)
  t.equal(new Set(hashedPorts).size, 1, 'one hashed port')
  return servers
}

/** The answers to several clients, with several connections each. */
async function askMany(t: Test, port: number, options: ForkOptions): Promise<Told[]> {
  const clients = Array.from(
    { length: CLIENTS },
    () => new Child(t, program('shared-port-client'), [port, CONNECTIONS].map(String), options),
  )
  return (await Promise.all(clients.map(client => client.receive<Told[]>()))).flat()
}

/** That so many answer, each over `transport`. */
async function meetAll(t: Test, port: number, count: number, transport: string): Promise<Set<string>> {
  const met = new Set<string>()
  await eventually(`${count} servers over ${transport}`, async () => {
    const all = await askMany(t, port, transport === 'tcp' ? {} : relinked())
    t.equal(all.length, CLIENTS * CONNECTIONS, 'each connection was answered')
    const counts = new Map<string, number>()
    for (const { who } of all) counts.set(who, (counts.get(who) ?? 0) + 1)
    t.comment(`${transport}: ${[...counts.values()]}`)
    for (const told of all) if (told.transport === transport) met.add(told.who)
    return met.size === count
  })
  return met
}

testIf(SHARED_PORTS, 'two processes: relinked clients meet both, as plain ones do', async t => {
  const port = await freePort()
  const [first, second] = (await serve(t, port, 2)) as [Child, Child]
  for (const transport of ['tcp', 'shm'])
    t.same([...(await meetAll(t, port, 2, transport))].sort(), [`${first.pid} 0`, `${second.pid} 0`].sort())

  await t.test('and when one of them is gone, the other', async t => {
    await first.kill()
    t.same([...(await meetAll(t, port, 1, 'shm'))], [`${second.pid} 0`])
  })
})

testIf(SHARED_PORTS, 'the threads of one process', async t => {
  const port = await freePort()
  const [process] = await serve(t, port, 2, 'threads')
  for (const transport of ['tcp', 'shm'])
    t.same([...(await meetAll(t, port, 2, transport))].sort(), [`${process?.pid} 1`, `${process?.pid} 2`])
})

testIf(SHARED_PORTS, 'the workers of a cluster, of which the primary has no part in it', async t => {
  const port = await freePort()
  await serve(t, port, 2, 'cluster')
  for (const transport of ['tcp', 'shm']) await meetAll(t, port, 2, transport)
})

t.test('without it the port is one listener alone', async t => {
  const port = await freePort()
  await serve(t, port, 1)
  await meetAll(t, port, 1, 'shm')
})
