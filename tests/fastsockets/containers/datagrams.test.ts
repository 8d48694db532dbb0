/** Datagrams between two containers of one host that share a rendezvous folder. */
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { DatagramTransport } from '../../../fastsockets/datagram/datagram-transport.ts'
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
import { eventually } from '../../support/until.ts'
import type { Echo } from '../programs/datagrams.ts'

const skip = noContainers()
if (skip) t.comment(`SKIPPED: datagrams between containers: ${skip}`)
const datagrams = program('datagrams')

interface Pair extends Containers {
  readonly echo: Child
  readonly client: Child
  readonly port: number
}

/** An echo on all addresses of the far container, and a client in the near one. */
async function start(t: Test, near: ContainerOptions = {}, far: ContainerOptions = near): Promise<Pair> {
  const containers = makeContainers(t)
  const echo = childIn(t, containers, containers.far, datagrams, ['echo', 'udp4', '0.0.0.0'], far)
  const { port } = await echo.receive<{ port: number }>()
  const args = ['client', 'udp4', '', containers.far.address, String(port)]
  const client = childIn(t, containers, containers.near, datagrams, args, near)
  return { ...containers, echo, client, port }
}

function transportOf(child: Child): Promise<DatagramTransport> {
  return child.ask<DatagramTransport>({ pairs: true })
}

async function untilFast({ client }: Pair): Promise<void> {
  await eventually('the pair to be fast', async () => {
    await client.ask({ echoes: 2000 })
    const { pairs } = await transportOf(client)
    return pairs.some(({ sends, receives }) => sends === 'shm' && receives === 'shm')
  })
}

t.test('the same datagrams and senders, by shared memory', { skip }, async t => {
  const pair = await start(t)
  const { near, far, client, echo, port } = pair
  await untilFast(pair)
  const names = namesIn(pair)
  t.ok(names.includes(`udp4-${far.address}-${port}`), names.join(', '))
  const { last, isSame } = await client.ask<{ isSame: boolean; last: Echo }>({ echoes: 50 })
  t.ok(isSame)
  t.match(last.from, { address: far.address, port, family: 'IPv4' })
  const sizes = await client.ask<Echo[]>({ sizes: true })
  t.ok(sizes.every(({ isSame }) => isSame))
  t.match((await transportOf(echo)).pairs, [{ address: near.address, sends: 'shm', receives: 'shm' }])
  await echo.kill()
  await eventually('the end of the pair', async () => (await transportOf(client)).transport === 'udp')
})

t.test('datagrams that start with the kernel move, too', { skip }, async t => {
  await untilFast(await start(t, { env: { FASTSOCKETS_START: '' } }))
})

t.test('a folder that is made after the sockets', { skip }, async t => {
  const folder = join(tmpdir(), `rendezvous-${process.pid}`)
  const pair = await start(t, { env: { FASTSOCKETS_RENDEZVOUS: folder } })
  t.ok((await pair.client.ask<{ isSame: boolean }>({ echoes: 20 })).isSame)
  mkdirSync(folder, { mode: 0o700 })
  t.teardown(() => rmSync(folder, { recursive: true }))
  await eventually('the name of the echo', () => namesIn({ folder }).some(name => name.startsWith('udp4-')))
  await untilFast(pair)
})

t.test('a plain peer, or one without the folder: the kernel', { skip }, async t => {
  for (const far of [{ isPlain: true }, { env: { FASTSOCKETS_RENDEZVOUS: 'off' } }]) {
    const { client } = await start(t, {}, far)
    for (let i = 0; i < 3; i++) t.ok((await client.ask<{ isSame: boolean }>({ echoes: 200 })).isSame)
    t.equal((await transportOf(client)).transport, 'udp')
  }
})
