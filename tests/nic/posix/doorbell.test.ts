/** The connection that two interfaces keep: what a peer may do to it, and what becomes of it when one is gone. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { closeSync, fstatSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import {
  BROKEN,
  type Driver,
  drivers,
  type MemoryOptions,
  type VirtualInterface,
} from '../../../nic/index.ts'
import { ARMED_WORD, RING_SIZE_MIN } from '../../../nic/ring/ring-layout.ts'
import { Child } from '../../support/child.ts'
import { CompletionLog, drain, patterned, sendFrame } from '../../support/frames.ts'
import { Caller } from '../../support/handoff.ts'
import { descriptorCount } from '../../support/resources.ts'
import { sendControlOf } from '../../support/ring-memory.ts'
import { skipHere } from '../../support/skip.ts'
import { until } from '../../support/until.ts'

const shm = drivers.get('shm') as Driver
const availability = shm.availability()
if (!availability.usable) {
  t.plan(0, `SKIPPED: shm cannot be used here: ${availability.reason}`)
  process.exit()
}

const FLOOD_TURNS = 500
/** libuv reads no more often in one turn. */
const READS_MAX = 32
const GROWTH_MAX = 1 << 20
const QUIET_MS = 500
const CPU_SHARE_MAX = 0.2

async function connectPair(
  t: Test,
  memory: MemoryOptions = {},
): Promise<[VirtualInterface, VirtualInterface]> {
  const offer = shm.offer({ queueSize: RING_SIZE_MIN, ...memory })
  const pair = await Promise.all([offer.accepted, shm.connect(offer.blob, memory)])
  t.teardown(() => {
    for (const end of pair) end.close()
  })
  return pair
}

/** An interface whose peer is a program of its own kind: it has the connection and does with it what it likes. */
async function connectHostile(t: Test): Promise<[VirtualInterface, Caller]> {
  const offer = shm.offer({ queueSize: RING_SIZE_MIN })
  const caller = new Caller(offer.blob)
  caller.say(caller.request())
  const { descriptors } = await caller.answer()
  for (const descriptor of descriptors) closeSync(descriptor)
  const end = await offer.accepted
  t.teardown(() => end.close())
  return [end, caller]
}

t.test('a flood costs a bounded number of calls a turn, and no memory', async t => {
  const [end, caller] = await connectHostile(t)
  const [near, far] = await connectPair(t)
  t.teardown(() => caller.close())
  let calls = 0
  end.setDoorbell(() => calls++)
  end.ref()
  const bytes = Buffer.alloc(64 * 1024)
  const { external, arrayBuffers } = process.memoryUsage()
  let mostCalls = 0
  for (let turn = 0; turn < FLOOD_TURNS; turn++) {
    while (caller.trySay(bytes));
    calls = 0
    await nextTurn()
    mostCalls = Math.max(mostCalls, calls)
    sendFrame(near, patterned(20, turn))
    if (!drain(far)[0]?.equals(patterned(20, turn))) t.fail('another frame arrived')
  }
  t.ok(mostCalls > 0 && mostCalls <= READS_MAX, `${mostCalls} calls in a turn`)
  const after = process.memoryUsage()
  const growth = after.external - external + after.arrayBuffers - arrayBuffers
  t.ok(growth < GROWTH_MAX, `${growth} bytes`)
})

t.test('descriptors that a peer passes with a ring go nowhere', async t => {
  const [end, caller] = await connectHostile(t)
  let rings = 0
  end.setDoorbell(() => rings++)
  end.ref()
  const before = descriptorCount()
  try {
    caller.say(Buffer.of(1), [0, 1, 2])
  } catch (error) {
    // Since Linux 6.16 they are refused on the way.
    t.match(error, { code: 'ERR_NIC_SYSTEM', errno: constants.errno.EPERM })
    caller.say(Buffer.of(1))
  }
  await until('the ring', () => rings === 1)
  t.equal(descriptorCount(), before)
  caller.close()
})

t.test('a peer that does not look is rung until the bell is full, and wakes up all the same', async t => {
  const [near, far] = await connectPair(t)
  let rings = 0
  far.setDoorbell(() => rings++)
  far.ref()
  const COUNT = 2000
  for (let i = 0; i < COUNT; i++) {
    sendControlOf(near)[ARMED_WORD] = 1
    sendFrame(near, patterned(8, i))
  }
  t.equal(rings, 0)
  await until('a ring', () => rings > 0)
  t.equal(drain(far).length, COUNT)
})

t.test('who has closed is gone for its peer: one last ring, no descriptor, no more rings', async t => {
  const before = descriptorCount()
  const [near, far] = await connectPair(t)
  t.equal(descriptorCount(), before + 2, 'one descriptor a side')
  let rings = 0
  near.setDoorbell(() => rings++)
  near.ref()
  far.arm(0)
  sendFrame(far, patterned(30, 1))
  far.close()
  // Into a connection whose end is not noticed yet.
  sendFrame(near, patterned(8, 2))
  await until('the last ring', () => rings === 1)
  t.equal(descriptorCount(), before)
  t.strictSame(drain(near), [patterned(30, 1)], 'what it had sent is there')
  t.equal(near.state, 'open')

  // Two files take the places of the descriptors; a ring would be written into one of them.
  const folder = t.testdir({})
  const files = ['a', 'b'].map(name => openSync(join(folder, name), 'w'))
  sendControlOf(near)[ARMED_WORD] = 1
  sendFrame(near, patterned(8, 3))
  t.equal(sendControlOf(near)[ARMED_WORD], 0, 'the bell was to be rung')
  for (const file of files) {
    t.equal(fstatSync(file).size, 0)
    closeSync(file)
  }

  const cpu = process.cpuUsage()
  await sleep(QUIET_MS)
  const { user, system } = process.cpuUsage(cpu)
  t.ok((user + system) / 1000 < QUIET_MS * CPU_SHARE_MAX, `${(user + system) / 1000} ms of CPU`)
  t.equal(rings, 1)
})

for (const memory of [{ readsPeer: true }, { sharesMemory: true }]) {
  t.test(`the memory of a peer that is gone is not touched any more: ${Object.keys(memory)}`, async t => {
    await testGone(t, memory)
  })
}

async function testGone(t: Test, memory: MemoryOptions): Promise<void> {
  const [near, far] = await connectPair(t, memory)
  if (!near.capabilities.rdmaRead) return skipHere(t, `${near.capabilities.rdmaReason}`)
  const access = { remoteRead: true, remoteWrite: true }
  const shared = memory.sharesMemory ? shm.allocate?.(8, true) : undefined
  const remote = near.importKey(far.register(shared ?? new Uint8Array(8), access).key)
  const local = near.register(new Uint8Array(8), { remoteRead: false, remoteWrite: false })
  let rings = 0
  near.setDoorbell(() => rings++)
  near.ref()
  far.close()
  await until('the end', () => rings === 1)
  near.rdmaRead(local, 0, remote, 0, 8, 1)
  near.rdmaWrite(local, 0, remote, 0, 8, 2)
  const log = new CompletionLog()
  near.pollCompletions(log, 2)
  t.strictSame(log.completions, [
    [1, BROKEN],
    [2, BROKEN],
  ])
}

t.test('a doorbell rings outside of every asynchronous context of the program', async t => {
  const storage = new AsyncLocalStorage<string>()
  const [near, far] = await storage.run('who connected', () => connectPair(t))
  const seen: unknown[] = []
  for (const end of [near, far]) {
    end.setDoorbell(() => seen.push(storage.getStore()))
    end.ref()
    end.arm(0)
  }
  sendFrame(near, patterned(8, 1))
  sendFrame(far, patterned(8, 1))
  await until('both rings', () => seen.length === 2)
  t.strictSame(seen, [undefined, undefined])
})

t.test('the primary and a worker of a cluster offer and connect', async t => {
  const primary = new Child(t, new URL('./cluster-child.js', import.meta.url))
  t.strictSame(await primary.receive(), { fromWorker: 'hello', fromPrimary: 'hello' })
})

t.test('a signal is not the end of the peer', async t => {
  const options = ['--cpu-prof', '--cpu-prof-interval=20', `--cpu-prof-dir=${t.testdir()}`]
  const child = new Child(t, new URL('profiled-child.js', import.meta.url), [], { execArgv: options })
  t.strictSame(await child.receive(), { gone: 0, afterwards: false })
})
