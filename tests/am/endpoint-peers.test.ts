/** 64 peers at once, in one process and in several. */
import { type Endpoint, OK } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { DRIVER_LISTS, LISTENING, PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { deliver } from '../support/endpoints.ts'
import { descriptorCount, memfdMappingCount } from '../support/resources.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver } from '../support/world.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'

const PEERS = 64
const MESSAGES = 50
const fixture = new URL('./many-endpoints-child.js', import.meta.url)

/** Answers every peer, and counts what each has sent. */
class Hub {
  readonly echoed = new Map<string, number>()
  readonly sunk = new Map<string, number>()

  constructor(endpoint: Endpoint) {
    const count = (counts: Map<string, number>, name: string): void =>
      void counts.set(name, (counts.get(name) ?? 0) + 1)
    endpoint.setHandler(ECHO, message => {
      count(this.echoed, message.source)
      message.reply(ANSWER, message.word(0), message.word(1))
    })
    endpoint.setHandler(SINK, message => count(this.sunk, message.source))
  }

  isComplete(counts: ReadonlyMap<string, number>, names: readonly string[]): boolean {
    return names.every(name => counts.get(name) === MESSAGES) && counts.size === names.length
  }
}

testOver(
  DRIVER_LISTS,
  `${PEERS} endpoints of this process talk to one, and it to them, at once`,
  async (t, world) => {
    const before = [descriptorCount(), memfdMappingCount()]
    const hubEndpoint = await world.open()
    const hub = new Hub(hubEndpoint)
    const spokes = await Promise.all(Array.from({ length: PEERS }, () => world.open()))
    const received = new Uint32Array(PEERS)
    await Promise.all(spokes.map(spoke => spoke.map(0, hubEndpoint.name)))
    await Promise.all(spokes.map((spoke, i) => hubEndpoint.map(i, spoke.name)))
    t.equal(hubEndpoint.stats().peers.length, PEERS, 'one connection for each')
    for (const [i, spoke] of spokes.entries()) {
      spoke.setHandler(SINK, message => {
        if (message.source === hubEndpoint.name) received[i] = (received[i] as number) + 1
      })
    }
    const talk = async (spoke: Endpoint, number: number): Promise<void> => {
      for (let i = 0; i < MESSAGES; i++) {
        const reply = await spoke.call(0, ECHO, undefined, [number, i])
        if (reply.word(0) !== number || reply.word(1) !== i) t.fail('another reply')
        await deliver(spoke, 0, () => spoke.request(0, SINK))
        await deliver(hubEndpoint, number, () => hubEndpoint.request(number, SINK))
      }
    }
    await withWatchdog('all replies', Promise.all(spokes.map(talk)))
    const names = spokes.map(({ name }) => name)
    await until(
      'all messages',
      () => hub.isComplete(hub.sunk, names) && received.every(count => count === MESSAGES),
    )
    t.ok(hub.isComplete(hub.echoed, names))
    await Promise.all(spokes.map(spoke => spoke.close()))
    await until('the hub to know', () => hubEndpoint.stats().peers.every(({ state }) => state === 'gone'))
    for (let i = 0; i < PEERS; i++) hubEndpoint.unmap(i)
    await until('the hub to forget', () => hubEndpoint.stats().peers.length === 0)
    await hubEndpoint.close()
    // A driver may keep a listener.
    await until('the descriptors', () => descriptorCount() <= (before[0] as number) + 2)
    t.equal(memfdMappingCount(), before[1])
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  `${PEERS} endpoints of eight processes, one of which is killed`,
  async (t, world) => {
    const hubEndpoint = await world.open()
    const hub = new Hub(hubEndpoint)
    let returned = 0
    hubEndpoint.setHandler(0, message => {
      if (message.reason === 'PEER_DEAD') returned++
    })
    const args = [world.list.name, hubEndpoint.name, String(PEERS / 8), String(MESSAGES)]
    const children = Array.from({ length: 8 }, () => new Child(t, fixture, args))
    const names: string[] = []
    for (const child of children) names.push(...(await child.receive<{ names: string[] }>()).names)
    await Promise.all(names.map((name, i) => hubEndpoint.map(i, name)))
    for (const child of children) child.send({})
    for (let i = 0; i < MESSAGES; i++) {
      for (const [destination] of names.entries()) {
        await deliver(hubEndpoint, destination, () => hubEndpoint.request(destination, SINK))
      }
    }
    for (const child of children) t.match(await child.receive(), { answer: ANSWER })
    await until('all messages', () => hub.isComplete(hub.sunk, names))
    t.ok(hub.isComplete(hub.echoed, names))
    // The name of a caller from another host is not verified: both sides dial.
    const connections = LISTENING.listen === undefined ? PEERS : 2 * PEERS
    t.equal(hubEndpoint.stats().peers.length, connections)

    const [victim, ...others] = children as [Child, ...Child[]]
    victim.process.kill('SIGSTOP')
    for (let i = 0; i < PEERS / 8; i++) t.equal(hubEndpoint.request(i, ECHO), OK)
    await victim.kill()
    await until('what was under way to the dead', () => returned === PEERS / 8)
    for (const child of others) child.send({})
    for (const child of others) t.equal((await child.end()).code, 0)
    await until('the end of all', () => hubEndpoint.stats().peers.every(({ state }) => state === 'gone'))
  },
)
