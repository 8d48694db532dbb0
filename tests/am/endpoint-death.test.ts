/** The death of a peer's process: everything that is outstanding comes back at once, and nothing stays behind. */
import type { Test } from 'tap'
import { type Endpoint, OK } from '../../am/index.ts'
import { Child } from '../support/child.ts'
import { COPYING_PROCESS_DRIVER_LISTS, PROCESS_DRIVER_LISTS } from '../support/driver-lists.ts'
import { arrivalOf, deliver, pollUntil } from '../support/endpoints.ts'
import { patterned } from '../support/frames.ts'
import { descriptorCount, memfdMappingCount } from '../support/resources.ts'
import { until, withWatchdog } from '../support/until.ts'
import { testOver, type World } from '../support/world.ts'
import { ECHO, type Question, SINK } from './endpoint-questions.ts'

const fixture = new URL('./endpoint-child.js', import.meta.url)
const CREDITS = 64
const ROUNDS = 8
/** What is promised is 50 ms; the time is told, and not tested, because the machine may be busy with other things. */

async function startPeer(t: Test, world: World, segment = 0): Promise<{ child: Child; name: string }> {
  const child = new Child(t, fixture, [world.list.name])
  const question: Question = { ask: 'open', options: { segment } }
  return { child, name: (await child.ask<{ name: string }>(question)).name }
}

/** Sends `CREDITS` messages to a process that does not run any more. */
function sendAll(t: Test, a: Endpoint): void {
  for (let i = 0; i < CREDITS; i++) {
    t.equal(i % 2 === 0 ? a.request(0, SINK, i) : a.requestMedium(0, SINK, patterned(i, i), i), OK)
  }
}

testOver(
  PROCESS_DRIVER_LISTS,
  `SIGKILL with ${CREDITS} messages outstanding: all are back`,
  async (t, world) => {
    const a = await world.open({ credits: CREDITS })
    const returned: { number: number; isRight: boolean }[] = []
    let lastMs = 0
    a.setHandler(0, message => {
      const { words, payload, reason, destination } = arrivalOf(message)
      const number = words[0] as number
      const expected = patterned(number % 2 === 0 ? 0 : number, number)
      returned.push({
        number,
        isRight: reason === 'PEER_DEAD' && destination === 0 && payload.equals(expected),
      })
      lastMs = performance.now()
    })
    const round = async (t: Test): Promise<number> => {
      const { child, name } = await startPeer(t, world)
      await a.map(0, name)
      child.process.kill('SIGSTOP')
      sendAll(t, a)
      t.equal(a.stats().peers.find(peer => peer.name === name)?.outstanding, CREDITS)
      const killedMs = performance.now()
      child.process.kill('SIGKILL')
      await until('all of them', () => returned.length === CREDITS)
      const all = returned.splice(0)
      t.ok(all.every(({ isRight }) => isRight))
      t.equal(new Set(all.map(({ number }) => number)).size, CREDITS, 'each comes back once')
      await child.exited
      return lastMs - killedMs
    }
    await t.test('once, to warm up', round)
    a.unmap(0)
    await until('no peer', () => a.stats().peers.length === 0)
    const before = descriptorCount()
    const times: number[] = []
    for (let i = 0; i < ROUNDS; i++) await t.test(`again, ${i}`, async t => void times.push(await round(t)))
    a.unmap(0)
    await until('no peer', () => a.stats().peers.length === 0)
    // A connection over which an endpoint was asked may close a turn later, also later than the count in `before`.
    await until('no descriptor is left', () => descriptorCount() <= before)
    t.equal(memfdMappingCount(), 0, 'no mapping is left')
    times.sort((x, y) => x - y)
    const [median, worst] = [times[ROUNDS / 2] as number, times.at(-1) as number]
    t.comment(
      `from the kill to the last return: median ${median.toFixed(1)} ms, worst ${worst.toFixed(1)} ms`,
    )
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  'SIGKILL in the middle of a flood both ways, again and again',
  async (t, world) => {
    const a = await world.open()
    const counts = { answered: 0, returned: 0, other: 0 }
    a.setHandler(0, message => void (message.reason === 'PEER_DEAD' ? counts.returned++ : counts.other++))
    a.setHandler(ECHO, message => message.replyMedium(3, message.payload(), message.word(0)))
    a.setHandler(3, () => void counts.answered++)
    for (let round = 0; round < 4; round++) {
      await t.test(`round ${round}`, async t => {
        const { child, name } = await startPeer(t, world)
        await a.map(0, name)
        await child.ask({ ask: 'map', destination: 0, name: a.name })
        child.send({ ask: 'flood', destination: 0, count: 1_000_000, size: 3000 })
        const before = counts.answered + counts.returned
        const payload = patterned(2000, 0)
        let sent = 0
        let exited = false
        void child.exited.then(() => {
          exited = true
        })
        while (!exited) {
          if (counts.answered - before > 500 && !child.process.killed) child.process.kill('SIGKILL')
          await deliver(a, 0, () => a.requestMedium(0, ECHO, payload, 0))
          sent++
        }
        await until(
          'each request to be answered or returned',
          () => counts.answered + counts.returned - before === sent,
        )
      })
    }
    t.equal(counts.other, 0)
    t.ok(counts.returned > 0 && counts.answered > 0)
    a.unmap(0)
    await until('no peer', () => a.stats().peers.length === 0)
  },
)

testOver(
  COPYING_PROCESS_DRIVER_LISTS,
  'long messages and gets that are on their way in parts come back',
  async (t, world) => {
    const SEGMENT = 4 << 20
    const { child, name } = await startPeer(t, world, SEGMENT)
    const a = await world.open({ segment: SEGMENT })
    await a.map(0, name)
    const returned: string[] = []
    a.setHandler(0, message => returned.push(`${message.reason} ${message.word(0)} ${message.length}`))
    child.process.kill('SIGSTOP')
    t.equal(a.get(0, SINK, 0, SEGMENT, 0, 1), OK)
    t.equal(a.requestLong(0, SINK, patterned(SEGMENT, 1), 0, 2), OK)
    const ready = a.ready(0)
    await child.kill()
    await until('both', () => returned.length === 2)
    t.strictSame(returned.toSorted(), ['PEER_DEAD 1 0', `PEER_DEAD 2 ${SEGMENT}`])
    await withWatchdog('readiness', ready)
    t.equal(a.request(0, SINK, 3), OK)
    await until('the next', () => returned.length === 3)
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  'with manual progress wait() ends, and poll() returns everything',
  async (t, world) => {
    const a = await world.open({ progress: 'manual' })
    const { child, name } = await startPeer(t, world)
    await a.map(0, name)
    let returned = 0
    a.setHandler(0, message => {
      if (message.reason === 'PEER_DEAD') returned++
    })
    child.process.kill('SIGSTOP')
    sendAll(t, a)
    t.equal(a.poll(), 0)
    const waiting = a.wait()
    child.process.kill('SIGKILL')
    await withWatchdog('the end of the wait', waiting)
    await pollUntil('all of them', [a], () => returned === CREDITS)
  },
)

testOver(PROCESS_DRIVER_LISTS, 'a peer that has mapped us and dies is forgotten', async (t, world) => {
  const a = await world.open()
  let handled = 0
  a.setHandler(SINK, () => void handled++)
  a.setHandler(ECHO, message => message.reply(3))
  for (let i = 0; i < 5; i++) {
    const { child } = await startPeer(t, world)
    await child.ask({ ask: 'map', destination: 0, name: a.name })
    t.strictSame(
      (await child.ask<{ words: number[] }>({ ask: 'call', destination: 0, words: [1] })).words,
      [],
    )
    t.equal(a.stats().peers.length, 1)
    await child.kill()
    await until('it to be forgotten', () => a.stats().peers.length === 0)
  }
})

testOver(PROCESS_DRIVER_LISTS, 'the others do not notice the death of one', async (t, world) => {
  const a = await world.open()
  const peers = await Promise.all([0, 1, 2].map(() => startPeer(t, world)))
  for (const [i, { name }] of peers.entries()) await a.map(i, name)
  const dead = peers[1]?.child as Child
  const calls = async (destination: number): Promise<number> => {
    for (let i = 0; ; i++) {
      const reply = await a.call(destination, ECHO, undefined, [i, destination]).catch(error => error)
      if (reply instanceof Error) {
        t.match(reply, { code: 'ERR_AM_UNDELIVERABLE', reason: 'PEER_DEAD' })
        return i
      }
      t.strictSame(reply.words, [i, destination])
      if (i === 300 && destination === 1) dead.process.kill('SIGKILL')
      if (i === 1500) return i
    }
  }
  const [first, second, third] = await Promise.all([calls(0), calls(1), calls(2)])
  t.strictSame([first, third], [1500, 1500])
  t.ok(second >= 300 && second < 1500, `${second} calls before its death`)
})
