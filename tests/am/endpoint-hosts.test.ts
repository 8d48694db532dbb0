/** Endpoints on two hosts without RDMA: reached by Ethernet frames or TCP, told apart from dead ones, refused without the key. */
import t, { type Test } from 'tap'
import type { EndpointStats } from '../../am/index.ts'
import type { Child } from '../support/child.ts'
import {
  blackHole,
  childOn,
  cut,
  type Host,
  keyFileOf,
  limitRate,
  makeSwitchedHosts,
  makeTwoHosts,
  mend,
  noTwoHosts,
} from '../support/two-hosts.ts'
import { eventually } from '../support/until.ts'
import type { Produced, Question, Report } from './endpoint-questions.ts'
import type { ThreadQuestion } from './endpoint-threads-child.ts'

const fixture = new URL('./endpoint-child.js', import.meta.url)
const threadsFixture = new URL('./endpoint-threads-child.js', import.meta.url)
const skip = noTwoHosts()
if (skip) t.comment(`SKIPPED: endpoints on two hosts: ${skip}`)

const LISTEN = '0.0.0.0:7400'
const DRIVERS = ['ethernet', 'tcp'] as const
/** The shortest time that an endpoint accepts. */
const PEER_TIMEOUT_MS = 2000

interface Side {
  readonly child: Child
  readonly name: string
  ask<A>(question: Question): Promise<A>
}

type Options = (Question & { ask: 'open' })['options']
type Env = Readonly<Record<string, string>>

async function open(t: Test, host: Host, options: Options, env: Env): Promise<Side> {
  const child = childOn(t, host, fixture, ['all'], env)
  const ask = async <A>(question: Question): Promise<A> => {
    const answer = await child.ask<A & { error?: object }>(question)
    if (answer.error !== undefined) throw Object.assign(new Error(), answer.error)
    return answer
  }
  const { name } = await ask<{ name: string }>({ ask: 'open', ...(options && { options }) })
  return { child, name, ask }
}

/** A server that listens on the far host, and a client on the near one that has mapped it. */
async function openBoth(t: Test, options: Options = {}, { near, far } = makeTwoHosts(t)) {
  const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
  const server = await open(t, far, { listen: LISTEN, ...options }, env)
  const client = await open(t, near, options, env)
  await client.ask({ ask: 'map', destination: 0, name: server.name })
  return { near, far, env, server, client, address: `tcp:${far.address}:7400` }
}

async function peersOf(side: Side): Promise<EndpointStats['peers']> {
  return (await side.ask<EndpointStats>({ ask: 'stats' })).peers
}

t.test('an endpoint is reached by its name, and by its address', { skip }, async t => {
  const { server, client, address, far } = await openBoth(t)
  t.match(server.name, new RegExp(`^am1-[0-9a-f-]+@tcp:${far.address}:7400$`), 'the name carries the address')
  t.match(await client.ask({ ask: 'call', destination: 0, words: [1, 2] }), { words: [1, 2] })
  await client.ask({ ask: 'map', destination: 1, name: address })
  t.match(await client.ask({ ask: 'call', destination: 1, words: [3] }), { words: [3] })
  const [peer, ...others] = await peersOf(client)
  t.strictSame(others, [], 'both names mean one connection')
  t.match(peer, { driver: 'tcp', destinations: [0, 1], state: 'open' })
  t.match(
    peer?.driverReason,
    /^loopback: .*; shm: the endpoint is in another network namespace, and the rendezvous folder .*; verbs: .+$/,
  )
  const [caller] = await peersOf(server)
  t.match(caller, { driver: 'tcp', driverReason: /shm: the peer (is on another host|has not offered it)/ })
})

t.test('where frames do not arrive the next driver connects, and the reason is shown', { skip }, async t => {
  const { near, far } = makeSwitchedHosts(t, 1400)
  const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
  const server = await open(t, far, { listen: LISTEN, drivers: ['ethernet', 'tcp'] }, env)
  const client = await open(t, near, { drivers: ['ethernet', 'tcp'] }, env)
  await client.ask({ ask: 'map', destination: 0, name: server.name })
  t.match(await client.ask({ ask: 'call', destination: 0, words: [4] }), { words: [4] })
  t.match((await peersOf(client))[0], { driver: 'tcp', driverReason: /ethernet: no frame of \d+ bytes/ })
})

for (const driver of DRIVERS) {
  t.test(`${driver}: messages of all sizes arrive once, both ways at the same time`, { skip }, async t => {
    const { server, client } = await openBoth(t, { drivers: [driver], listen: LISTEN })
    await server.ask({ ask: 'map', destination: 0, name: client.name })
    t.match((await peersOf(client))[0], { driver })
    const floods = [server, client].flatMap(side =>
      [0, 60, 5000, 64 * 1024].map(size => ({ side, size, count: size > 10_000 ? 50 : 500 })),
    )
    for (const { side, size, count } of floods) side.child.send({ ask: 'flood', destination: 0, count, size })
    for (const side of [server, client]) for (let i = 0; i < 4; i++) await side.child.receive()
    for (const side of [server, client]) {
      // A flood ends with as many answers as it has sent, of whichever flood.
      await eventually('the other answers', async () => {
        const { answered, echoed } = await side.ask<Report>({ ask: 'report' })
        return answered >= 1550 && echoed >= 1550
      })
      const report = await side.ask<Report>({ ask: 'report' })
      t.match(report, { answered: 1550, echoed: 1550, wrong: 0, returned: 0 })
    }
  })
}

for (const driver of DRIVERS) {
  t.test(`${driver}: a killed process is known to be dead at once`, { skip }, async t => {
    const { server, client } = await openBoth(t, { drivers: [driver], peerTimeoutMs: 60_000 })
    await server.child.kill()
    await eventually('the death', async () => (await peersOf(client))[0]?.state === 'gone')
    const report = await client.ask<Produced>({ ask: 'produce', destination: 0, count: 5, size: 10 })
    t.match(report, { returned: 5, outstanding: 0 })
  })
}

for (const driver of DRIVERS) {
  t.test(
    `${driver}: a host that has vanished is known to be dead in time, idle or not`,
    { skip },
    async t => {
      for (const isBusy of [false, true]) {
        const { far, client } = await openBoth(t, { drivers: [driver], peerTimeoutMs: PEER_TIMEOUT_MS })
        await client.ask({ ask: 'call', destination: 0, words: [1] })
        cut(far)
        if (isBusy)
          client.child.send({ ask: 'produce', destination: 0, count: 3, size: 10 } satisfies Question)
        await eventually('the death', async () => {
          if (isBusy) return true
          return (await peersOf(client))[0]?.state === 'gone'
        })
        if (isBusy) t.match(await client.child.receive<Produced>(), { returned: 3, outstanding: 0 })
      }
    },
  )
}

for (const driver of DRIVERS) {
  t.test(`${driver}: a cable that is plugged in again in time loses nothing`, { skip }, async t => {
    const { near, client } = await openBoth(t, { drivers: [driver] })
    client.child.send({ ask: 'flood', destination: 0, count: 3000, size: 3000 } satisfies Question)
    for (let i = 0; i < 3; i++) {
      cut(near)
      await new Promise(resolve => setTimeout(resolve, 100))
      mend(near)
    }
    t.match(await client.child.receive<Report>(), { answered: 3000, wrong: 0, returned: 0 })
  })
}

for (const driver of DRIVERS) {
  t.test(`${driver}: a frozen process is not dead: everything waits, and goes on`, { skip }, async t => {
    const { server, client } = await openBoth(t, { drivers: [driver], peerTimeoutMs: 60_000 })
    client.child.send({ ask: 'flood', destination: 0, count: 1000, size: 2000 } satisfies Question)
    server.child.process.kill('SIGSTOP')
    await new Promise(resolve => setTimeout(resolve, 500))
    server.child.process.kill('SIGCONT')
    t.match(await client.child.receive<Report>(), { answered: 1000, wrong: 0, returned: 0 })
  })
}

t.test('tcp: a process that is frozen for less than the time-out is not dead', { skip }, async t => {
  const { server, client } = await openBoth(t, { drivers: ['tcp'], peerTimeoutMs: 12_000 })
  // Fills the buffers of both kernels.
  client.child.send({ ask: 'flood', destination: 0, count: 200, size: 60_000 } satisfies Question)
  server.child.process.kill('SIGSTOP')
  await new Promise(resolve => setTimeout(resolve, 10_300))
  server.child.process.kill('SIGCONT')
  t.match(await client.child.receive<Report>(), { answered: 200, wrong: 0, returned: 0 })
})

for (const driver of DRIVERS) {
  t.test(`${driver}: a slow link that drops frames loses nothing`, { skip }, async t => {
    const { near, far, between } = makeSwitchedHosts(t)
    limitRate(between, between.farPort, 100)
    limitRate(between, between.nearPort, 100)
    const { client } = await openBoth(t, { drivers: [driver] }, { near, far })
    const flood: Question = { ask: 'flood', destination: 0, count: 1000, size: 5000 }
    t.match(await client.ask<Report>(flood), { answered: 1000, wrong: 0, returned: 0 })
  })

  t.test(`${driver}: a connection that the switch drops ends in time, on both sides`, { skip }, async t => {
    const { between, ...hosts } = makeSwitchedHosts(t)
    const { server, client } = await openBoth(t, { drivers: [driver], peerTimeoutMs: PEER_TIMEOUT_MS }, hosts)
    t.match(await client.ask({ ask: 'call', destination: 0, words: [1] }), { words: [1] })
    blackHole(between)
    const produced = await client.ask<Produced>({ ask: 'produce', destination: 0, count: 3, size: 10 })
    t.match(produced, { returned: 3, outstanding: 0 })
    await eventually('the death', async () => ((await peersOf(server))[0]?.state ?? 'gone') === 'gone')
  })
}

t.test('threads of both hosts: each has its endpoint, and its end is no other one', { skip }, async t => {
  const { near, far } = makeTwoHosts(t)
  const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
  const servers = childOn(t, far, threadsFixture, ['all'], env)
  const clients = childOn(t, near, threadsFixture, ['all'], env)
  const ask = async <A>(
    child: Child,
    thread: number,
    question: Question | { ask: 'terminate' },
  ): Promise<A> => await child.ask<A>({ thread, ...question } satisfies ThreadQuestion)
  const THREADS = [0, 1]
  const names: string[] = []
  for (const thread of THREADS) {
    const options = { listen: `0.0.0.0:${7400 + thread}` }
    names.push((await ask<{ name: string }>(servers, thread, { ask: 'open', options })).name)
    await ask(clients, thread, { ask: 'open' })
  }
  for (const thread of THREADS)
    for (const [destination, name] of names.entries()) {
      await ask(clients, thread, { ask: 'map', destination, name })
      const words = [thread, destination]
      t.match(
        await ask(clients, thread, { ask: 'call', destination, words }),
        { words },
        `${thread} to ${destination}`,
      )
    }
  await ask(clients, 0, { ask: 'terminate' })
  const states = async () =>
    (await ask<EndpointStats>(servers, 0, { ask: 'stats' })).peers.map(
      ({ driver, state }) => `${driver} ${state}`,
    )
  await eventually(
    'only the peer of the ended thread is gone',
    async () => (await states()).join() === 'tcp open',
  )
  t.match(await ask(clients, 1, { ask: 'call', destination: 0, words: [7, 8] }), { words: [7, 8] })
})

t.test('without the key, or with another one, no connection is made', { skip }, async t => {
  const { near, far } = makeTwoHosts(t)
  const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
  const server = await open(t, far, { listen: LISTEN }, env)
  const rejected = async (env: Env, pattern: RegExp): Promise<void> => {
    const client = await open(t, near, {}, env)
    for (const name of [server.name, `tcp:${far.address}:7400`])
      await t.rejects(client.ask({ ask: 'map', destination: 0, name }), {
        code: 'ERR_AM_UNREACHABLE',
        message: pattern,
      })
  }
  await rejected({}, /FASTSOCKETS_KEY_FILE/)
  await rejected(
    { FASTSOCKETS_KEY_FILE: keyFileOf(t, Buffer.alloc(40, 'x')) },
    /its key is not the key of this side/,
  )
  await rejected({ FASTSOCKETS_KEY_FILE: keyFileOf(t, 'short') }, /at least 32/)
  await rejected({ FASTSOCKETS_KEY_FILE: keyFileOf(t, Buffer.alloc(40, 'k'), 0o640) }, /chmod 600/)
  await t.rejects(open(t, near, { listen: LISTEN }, {}), { code: 'ERR_NIC_KEY' }, 'nor may it listen')
  const client = await open(t, near, {}, env)
  await client.ask({ ask: 'map', destination: 0, name: server.name })
  t.match(await client.ask({ ask: 'call', destination: 0, words: [9] }), { words: [9] }, 'others are served')
})

t.test('an endpoint that cannot be reached: each driver has its reason', { skip }, async t => {
  const { near, far } = makeTwoHosts(t)
  const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
  const client = await open(t, near, {}, env)
  const silent = await open(t, far, {}, env)
  await t.rejects(client.ask({ ask: 'map', destination: 0, name: silent.name }), {
    code: 'ERR_AM_UNREACHABLE',
    message:
      /loopback: .*another network namespace; shm: .*another network namespace, .*; verbs: .*; tcp: the name carries no address/,
  })
  await t.rejects(client.ask({ ask: 'map', destination: 0, name: `tcp:${far.address}:7400` }), {
    code: 'ERR_AM_NO_SUCH_ENDPOINT',
    message: /loopback: which endpoint .* is not known; shm: .*; verbs: .*; tcp: .* ECONNREFUSED/,
  })
})
