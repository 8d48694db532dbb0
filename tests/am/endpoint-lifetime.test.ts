/** A process lives as long as an endpoint of its event loop is open; an idle endpoint costs nothing. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { type Endpoint, OK } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { PROCESS_DRIVER_LISTS, RELIABLE_PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { keepArrivals } from '../support/endpoints.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver, type World } from '../support/world.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'

const fixture = new URL('./lifetime-endpoint-child.js', import.meta.url)
const CLOSE = 20
const POLLER = 21
/** Far longer than a process needs that has nothing to do. */
const A_WHILE_MS = 400

async function start(
  t: Test,
  world: World,
  mode: string,
): Promise<{ child: Child; own: Endpoint; name: string }> {
  const own = await world.open()
  own.setHandler(ECHO, message => message.reply(ANSWER))
  const child = new Child(t, fixture, [world.list.name, mode, own.name])
  return { child, own, ...(await child.receive<{ name: string }>()) }
}

for (const [mode, reason] of [
  ['manual', 'PEER_DEAD'],
  ['event loop, unreferenced', 'PEER_DEAD'],
  ['event loop, unreferenced, with a stream', 'PEER_DEAD'],
  ['event loop, after a call', 'PEER_CLOSED'],
  ['process.exit', 'PEER_DEAD'],
] as const) {
  testOver(PROCESS_DRIVER_LISTS, `a process ends by itself: ${mode}`, async (t, world) => {
    const { child, own, name } = await start(t, world, mode)
    // It may be gone already; then it is no such endpoint.
    await own.map(0, name).catch(() => {})
    t.strictSame(await child.end(), { code: 0, signal: null })
    const returned = keepArrivals(own, 0)
    t.equal(own.request(0, SINK), OK)
    await until('its return', () => returned.length === 1)
    t.ok([reason, 'NO_SUCH_ENDPOINT'].includes(`${returned[0]?.reason}`), `${returned[0]?.reason}`)
    t.equal(child.stderr, '')
  })
}

for (const mode of ['event loop', 'event loop, referenced again'] as const) {
  testOver(
    PROCESS_DRIVER_LISTS,
    `a process stays until its endpoint is closed: ${mode}`,
    async (t, world) => {
      const { child, own, name } = await start(t, world, mode)
      await own.map(0, name)
      t.equal((await own.call(0, ECHO, undefined, [1], { timeoutMs: 10_000 })).word(0), 1)
      await sleep(A_WHILE_MS)
      t.equal((await own.call(0, ECHO, undefined, [2], { timeoutMs: 10_000 })).word(0), 2)
      // No other endpoint needs to have it mapped.
      own.unmap(0)
      await sleep(A_WHILE_MS)
      await own.map(0, name)
      await own.call(0, CLOSE, undefined, [], { timeoutMs: 10_000 })
      t.strictSame(await child.end(), { code: 0, signal: null })
      t.equal(child.stderr, '')
    },
  )
}

testOver(PROCESS_DRIVER_LISTS, 'a process with manual progress stays while it waits', async (t, world) => {
  const { child, own, name } = await start(t, world, 'manual, after a wait')
  await sleep(A_WHILE_MS)
  await own.map(0, name)
  t.equal((await own.call(0, ECHO, undefined, [5], { timeoutMs: 10_000 })).word(0), 5)
  t.strictSame(await child.end(), { code: 0, signal: null })
})

testOver(PROCESS_DRIVER_LISTS, 'a process with manual progress stays if it asks for it', async (t, world) => {
  const { child, own, name } = await start(t, world, 'manual, after a ref')
  await sleep(A_WHILE_MS)
  await own.map(0, name)
  t.equal(child.process.exitCode, null)
})

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'what was sent before close() arrives, also at a peer that looks late',
  async (t, world) => {
    const own = await world.open({ progress: 'manual' })
    const arrivals = keepArrivals(own, SINK)
    const child = new Child(t, fixture, [world.list.name, 'event loop, messages on their way', own.name])
    await child.receive()
    t.strictSame(await child.end(), { code: 0, signal: null })
    await until('all of them', () => {
      own.poll()
      return arrivals.length === 64
    })
    t.equal(new Set(arrivals.map(({ words }) => words[0])).size, 64)
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  'what was sent before close() arrives at a peer that polls',
  async (t, world) => {
    const own = await world.open({ progress: 'manual' })
    const arrivals = keepArrivals(own, SINK)
    const child = new Child(t, fixture, [world.list.name, 'event loop, messages on their way', own.name])
    await child.receive()
    const ended = child.end()
    await until('all of them', () => {
      own.poll()
      return arrivals.length === 64
    })
    t.strictSame(await ended, { code: 0, signal: null })
    t.equal(new Set(arrivals.map(({ words }) => words[0])).size, 64)
  },
)

testOver(PROCESS_DRIVER_LISTS, 'an idle pair of endpoints sleeps, on both sides', async (t, world) => {
  const { own, name } = await start(t, world, 'event loop')
  await own.map(0, name)
  const look = async (): Promise<{ turns: number; cpuMs: number }> => {
    const reply = await own.call(0, POLLER)
    return { turns: reply.word(0), cpuMs: reply.word(1) }
  }
  await look()
  await sleep(A_WHILE_MS)
  const before = await look()
  await sleep(1000)
  const after = await look()
  t.ok(after.turns - before.turns < 100, `${after.turns - before.turns} turns in 1 s, for two calls`)
  t.ok(after.cpuMs - before.cpuMs < 100, `${after.cpuMs - before.cpuMs} ms of processor time`)
})

testOver(
  PROCESS_DRIVER_LISTS,
  'close() of one whose peer does not run ends all the same',
  async (t, world) => {
    const { child, own, name } = await start(t, world, 'event loop')
    await own.map(0, name)
    child.process.kill('SIGSTOP')
    for (let i = 0; i < 64; i++) own.requestMedium(0, SINK, Buffer.alloc(60_000))
    await withWatchdog('the end of close()', own.close())
    t.throws(() => own.requestMedium(0, SINK, Buffer.alloc(1)), { code: 'ERR_AM_CLOSED' })
    child.process.kill('SIGCONT')
  },
)
