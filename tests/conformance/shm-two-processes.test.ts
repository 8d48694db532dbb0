import t, { type Test } from 'tap'
import {
  BROKEN,
  type Capabilities,
  type Driver,
  drivers,
  type MemoryOptions,
  NO_RESOURCE,
  OK,
  OUT_OF_BOUNDS,
  type VirtualInterface,
} from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { CompletionLog, drain, fill, fillPattern, Handler, patterned, sendFrame } from '../support/frames.ts'
import { REACH } from '../support/placement.ts'
import { seededRandom } from '../support/random.ts'
import { descriptorCount, memfdMappingCount } from '../support/resources.ts'
import { skipHere } from '../support/skip.ts'
import { until } from '../support/until.ts'
import { QUEUE_SIZE } from './pairs.ts'
import type { Question } from './shm-peer-child.ts'

const fixture = new URL('./shm-peer-child.js', import.meta.url)
const shm = drivers.get('shm') as Driver
const availability = shm.availability()
const skip = availability.usable ? false : availability.reason

interface Connected {
  readonly end: VirtualInterface
  readonly child: Child
  /** As the child sees its own end. */
  readonly childCapabilities: Capabilities
  ask<T>(question: Question): Promise<T>
}

/** The two ways in which one process reaches memory of another. */
const WAYS: readonly [what: string, memory: MemoryOptions][] = [
  ['in a segment', { sharesMemory: true }],
  ['in its process', { readsPeer: true }],
]

async function connectChild(t: Test, memory: MemoryOptions = {}): Promise<Connected> {
  const child = new Child(t, fixture)
  const ask = <T>(question: Question): Promise<T> => child.ask<T>(question)
  const offer = shm.offer({ queueSize: QUEUE_SIZE, ...memory, ...REACH })
  const blob = Buffer.from(offer.blob).toString('base64')
  const { capabilities } = await ask<{ capabilities: Capabilities }>({ ask: 'connect', blob, ...memory })
  const end = await offer.accepted
  t.teardown(() => end.close())
  return { end, child, childCapabilities: capabilities, ask }
}

t.test(
  'frames of random lengths go to another process and come back, both asleep in between',
  { skip },
  async t => {
    const { end, ask } = await connectChild(t)
    await ask({ ask: 'echo' })
    const random = seededRandom(t)
    const outstanding: Buffer[] = []
    let wrong = 0
    const sink = new Handler(content => {
      if (!outstanding.shift()?.equals(content)) wrong++
    })
    let bell = 0
    end.setDoorbell(() => {
      bell++
    })
    end.ref()

    for (let number = 0; number < 10_000; ) {
      for (let burst = random.within(1, 30); burst > 0; burst--, number++) {
        const longest = random.chance(0.05) ? end.capabilities.frameMax : 500
        const frame = patterned(random.within(0, longest), number)
        if (sendFrame(end, frame) !== OK) break
        outstanding.push(frame)
      }
      end.poll(sink, 64)
      // Now and then everything has come back, and both sides sleep.
      while (outstanding.length > 1000 || (random.chance(0.02) && outstanding.length > 0)) {
        const before = bell
        if (end.arm(0)) await until('an echo', () => bell > before)
        end.poll(sink, 1024)
      }
    }
    await until('the last echo', () => {
      end.poll(sink, 64)
      return outstanding.length === 0
    })
    t.equal(wrong, 0)
    t.ok(bell > 0, `the doorbell rang ${bell} times`)
  },
)

t.test('a producer that sleeps for room is woken by the other process', { skip }, async t => {
  const { end, ask } = await connectChild(t)
  let bell = 0
  end.setDoorbell(() => {
    bell++
  })
  end.ref()
  const { count, refusal } = fill(end, 1000)
  t.equal(refusal, NO_RESOURCE)
  t.equal(end.arm(1000), true)
  await ask({ ask: 'echo' })
  await until('room', () => bell > 0)
  let echoes = 0
  await until('all echoes', () => {
    echoes += drain(end).length
    return echoes === count
  })
  t.equal(end.hasRoom(1000), true)
})

for (const [what, memory] of WAYS) {
  t.test(
    `what another process has registered ${what} is read and written without its help`,
    { skip },
    async t => {
      const { end, ask } = await connectChild(t, memory)
      if (!end.capabilities.rdmaRead)
        return skipHere(t, `no one-sided access here: ${end.capabilities.rdmaReason}`)
      const access = { remoteRead: true, remoteWrite: true }
      const { key } = await ask<{ key: string }>({ ask: 'register', length: 100_000, access })
      const remote = end.importKey(Buffer.from(key, 'base64'))
      const local = end.register(new Uint8Array(100_000), { remoteRead: false, remoteWrite: false })
      const log = new CompletionLog()

      t.equal(end.rdmaRead(local, 0, remote, 0, 100_000, 1), OK)
      t.ok(patterned(100_000, 3).equals(local.bytes))

      local.bytes.fill(0xee)
      t.equal(end.rdmaWrite(local, 10, remote, 50_000, 1000, 2), OK)
      const { bytes } = await ask<{ bytes: string }>({ ask: 'show' })
      const expected = patterned(100_000, 3).fill(0xee, 50_000, 51_000)
      t.ok(expected.equals(Buffer.from(bytes, 'base64')))

      t.equal(end.rdmaRead(local, 0, remote, 1, 100_000, 3), OUT_OF_BOUNDS)
      t.equal(end.pollCompletions(log, 10), 2)
      t.strictSame(log.completions, [
        [1, OK],
        [2, OK],
      ])
    },
  )

  t.test(`the other process reads our memory ${what} too, or says why not`, { skip }, async t => {
    const { end, ask, childCapabilities } = await connectChild(t, memory)
    if (!childCapabilities.rdmaRead) {
      t.ok(childCapabilities.rdmaReason)
      t.comment(`SKIPPED: no one-sided access from the child: ${childCapabilities.rdmaReason}`)
      return
    }
    const bytes = (memory.sharesMemory && shm.allocate?.(5000, false)) || new Uint8Array(5000)
    fillPattern(bytes, 8)
    const registration = end.register(bytes, { remoteRead: true, remoteWrite: false })
    const key = Buffer.from(registration.key).toString('base64')
    const answer = await ask<{ status: number; completions: unknown; bytes: string }>({ ask: 'read', key })
    t.equal(answer.status, OK)
    t.strictSame(answer.completions, [[5, OK]])
    t.ok(Buffer.from(bytes).equals(Buffer.from(answer.bytes, 'base64')))
    registration.deregister()
  })
}

for (const [what, memory] of WAYS) {
  const name = `what a process had sent before SIGKILL is delivered, and nothing more happens: memory ${what}`
  t.test(name, { skip }, async t => {
    const { end, child, ask } = await connectChild(t, memory)
    await ask({ ask: 'send', count: 300, length: 100 })
    const access = { remoteRead: true, remoteWrite: true }
    const { key } = await ask<{ key: string }>({ ask: 'register', length: 100, access })
    let rings = 0
    end.setDoorbell(() => {
      rings++
    })
    end.ref()
    t.equal((await child.kill()).signal, 'SIGKILL')
    await until('the last ring', () => rings === 1)

    const frames = drain(end)
    t.equal(frames.length, 300)
    t.ok(frames.every((frame, i) => frame.equals(patterned(100, i))))
    t.equal(fill(end, 1000).refusal, NO_RESOURCE, 'its queue takes what fits')
    t.equal(end.arm(1000), true)
    t.equal(end.state, 'open', 'a death does not break the interface')

    if (end.capabilities.rdmaRead) {
      const local = end.register(new Uint8Array(100), { remoteRead: false, remoteWrite: false })
      const remote = end.importKey(Buffer.from(key, 'base64'))
      const log = new CompletionLog()
      t.equal(end.rdmaRead(local, 0, remote, 0, 100, 9), OK)
      end.pollCompletions(log, 1)
      t.strictSame(log.completions, [[9, BROKEN]], 'the memory is gone, and the completion says so')
    }
  })
}

t.test(
  'SIGKILL in the middle of a flood leaves an intact beginning, and nothing behind',
  { skip },
  async t => {
    const flooded = async (t: Test): Promise<void> => {
      const { end, child } = await connectChild(t)
      child.send({ ask: 'flood', length: 777 } satisfies Question)
      let count = 0
      let wrong = 0
      const sink = new Handler(content => {
        if (!patterned(777, count++).equals(content)) wrong++
      })
      await until('a good part of the flood', () => {
        end.poll(sink, 64)
        return count > 2000
      })
      child.process.kill('SIGKILL')
      await child.exited
      while (end.poll(sink, 64) > 0) {}
      t.equal(wrong, 0)
      t.equal(end.state, 'open')
      end.close()
    }
    await t.test('once, to warm up', flooded)
    const before = descriptorCount()
    // Memory that an earlier test has allocated is unmapped when it is collected.
    const mappings = memfdMappingCount()
    for (let i = 0; i < 5; i++) await t.test(`again, ${i}`, flooded)
    // Pipes of the child that warmed up may close late, and count in `before` only.
    await until('the descriptors to be closed', () => descriptorCount() <= before)
    t.ok(memfdMappingCount() <= mappings, 'no ring stays mapped')
  },
)
