/** More connections than the device has completions for, if each had receives of its own: they share. */
import { constants } from 'node:os'
import t, { type Test } from 'tap'
import { type Driver, drivers, type VirtualInterface } from '../../../nic/index.ts'
import { chooseDevice } from '../../../nic/verbs/device-choice.ts'
import { sharedDepthOf } from '../../../nic/verbs/device-limits.ts'
import {
  RECEIVES_GRANTED_MIN,
  RECEIVES_MIN,
  RECEIVES_RESERVED,
  RING_SIZE_MIN,
} from '../../../nic/verbs/frame-layout.ts'
import { DEVICE_MAX_SRQ, DEVICE_MAX_SRQ_WR } from '../../../nic/verbs/library-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { RECEIVES_AT_ONCE } from '../../../nic/verbs/receive-chain.ts'
import { OWN_RECEIVERS_MAX, SharedReceives } from '../../../nic/verbs/shared-receives.ts'
import { VerbsAdapter } from '../../../nic/verbs/verbs-adapter.ts'
import { VerbsInterface } from '../../../nic/verbs/verbs-interface.ts'
import { loadVerbs, type VerbsLibrary } from '../../../nic/verbs/verbs-library.ts'
import { fill, Handler, sendFrame } from '../../support/frames.ts'
import { eventually, until, withWatchdog } from '../../support/until.ts'
import { connectEnds } from '../connected-ends.ts'
import { Mover } from '../mover.ts'
import { type Program, startElsewhere } from '../other-host.ts'
import { takeOwnReceives } from '../own-receives.ts'
import type { Order } from '../programs/echoing-peer.ts'
import { receiverNotReadyCount } from '../receiver-not-ready.ts'

const PEER = new URL('../programs/echoing-peer.js', import.meta.url)
/** With receives of their own there is room for 56 to 72. */
const CONNECTIONS = 120
/** With small rings. */
const HELD_MIN = 450
const FLOODED = 8
const FLOOD_FRAMES = 600
const CHURNED = 30
const CHURN_ROUNDS = 3
/** In one process: rounds enough to use up all receives several times, if they were not made good. */
const ROUNDS_UNREAD = 24
const FRAME_LENGTH = 200
const WAIT_MS_MAX = 120_000
const verbs = drivers.get('verbs') as Driver
const adapter = requireAdapter()

/** Sends numbered frames, and expects each of them back, in order. */
class Caller extends Mover {
  #next = 0
  #expected = 0
  #isRight = true
  #done = (_isRight: boolean): void => {}

  /** True if all came back as they were. */
  async call(count: number): Promise<boolean> {
    const done = new Promise<boolean>(resolve => {
      this.#done = resolve
    })
    for (let i = 0; i < count; i++) {
      const frame = Buffer.alloc(FRAME_LENGTH, this.#next)
      frame.writeUInt32LE(this.#next++)
      this.send(frame)
    }
    this.move()
    return await withWatchdog('the echo', done, WAIT_MS_MAX)
  }

  take(frame: Buffer): void {
    const isNext = frame.length === FRAME_LENGTH && frame.readUInt32LE() === this.#expected
    this.#isRight &&= isNext && frame[FRAME_LENGTH - 1] === (this.#expected & 0xff)
    if (++this.#expected === this.#next) this.#done(this.#isRight)
  }
}

function order(peer: Program, what: Order): void {
  peer.tell(JSON.stringify(what))
}

/** So many connections with the other process. */
async function call(peer: Program, count: number): Promise<Caller[]> {
  const offers = Array.from({ length: count }, () =>
    verbs.offer({ queueSize: RING_SIZE_MIN, timeoutMs: WAIT_MS_MAX }),
  )
  for (const { blob } of offers) order(peer, { offer: Buffer.from(blob).toString('base64') })
  for (const { answer } of offers) {
    const { reply } = await peer.next<{ reply: string }>()
    answer?.(Buffer.from(reply, 'base64'))
  }
  return (await Promise.all(offers.map(({ accepted }) => accepted))).map(end => new Caller(end))
}

async function closeAll(adapter: VerbsAdapter, ends: readonly VirtualInterface[]): Promise<void> {
  for (const end of ends) end.close()
  await until('the memory', () => adapter.slabBytes === 0)
}

function verbsLibrary(): VerbsLibrary {
  const { library } = loadVerbs()
  if (library === undefined) throw new Error('libibverbs is not there')
  return library
}

function adapterWith(t: Test, changes: (real: VerbsLibrary) => Partial<VerbsLibrary>): VerbsAdapter {
  const real = verbsLibrary()
  const chosen = chooseDevice(real)
  if (!('context' in chosen)) throw new Error(chosen.reason)
  const adapter = new VerbsAdapter({ ...real, ...changes(real) }, chosen.context, chosen.port)
  t.teardown(async () => {
    adapter.abandon('the test is over')
    await until('nothing stays behind', () => adapter.isClosed)
  })
  return adapter
}

/** The real device, which says of itself that it has this limit. */
function adapterLimitedTo(t: Test, offset: number, limit: number): VerbsAdapter {
  return adapterWith(t, real => ({
    ibv_query_device: (context, attributes) => {
      const errno = real.ibv_query_device(context, attributes)
      new DataView(attributes.buffer, attributes.byteOffset).setInt32(offset, limit, true)
      return errno
    },
  }))
}

await t.test(`${CONNECTIONS} connections of two processes, all over verbs`, async t => {
  const peer = startElsewhere(t, PEER)
  await peer.next()
  const callers = await call(peer, CONNECTIONS)
  const sharing = CONNECTIONS - OWN_RECEIVERS_MAX
  const { granted } = adapter.sharedReceives
  t.ok(callers.every(({ end }) => end.driver === 'verbs' && end.state === 'open'))
  t.equal(granted, sharing * RECEIVES_GRANTED_MIN)

  await t.test('all of them echo', async t => {
    const isRight = await Promise.all(callers.map(caller => caller.call(2 * RECEIVES_GRANTED_MIN)))
    t.ok(isRight.every(Boolean))
    t.equal(receiverNotReadyCount(), 0)
  })

  await t.test(`${FLOODED} of those that share are flooded at once`, async t => {
    const flooded = callers.slice(-FLOODED)
    const isRight = await Promise.all(flooded.map(caller => caller.call(FLOOD_FRAMES)))
    t.ok(isRight.every(Boolean))
    t.equal(receiverNotReadyCount(), 0)
  })

  await t.test('what closed connections were granted, others are', async t => {
    let first = CONNECTIONS - CHURNED
    for (let round = 0; round < CHURN_ROUNDS; round++) {
      const left = granted - CHURNED * RECEIVES_GRANTED_MIN
      for (const { end } of callers.splice(-CHURNED)) end.close()
      order(peer, { close: Array.from({ length: CHURNED }, (_, i) => first + i), left })
      t.strictSame(await peer.next(), { granted: left })
      await eventually('the grants', () => adapter.sharedReceives.granted === left)
      first += CHURNED
      const fresh = await call(peer, CHURNED)
      callers.push(...fresh)
      t.equal(adapter.sharedReceives.granted, granted)
      t.ok((await Promise.all(fresh.map(caller => caller.call(RECEIVES_GRANTED_MIN)))).every(Boolean))
    }
    t.equal(receiverNotReadyCount(), 0)
  })

  await closeAll(
    adapter,
    callers.map(({ end }) => end),
  )
  t.equal(adapter.sharedReceives.granted, 0)
})

await t.test('what a connection has used and not said is made good when it closes', async t => {
  const own = takeOwnReceives(adapter)
  const stays = await connectEnds(adapter, adapter.cache)
  const { granted } = adapter.sharedReceives
  t.equal(granted, 2 * RECEIVES_GRANTED_MIN)
  const usable = RECEIVES_GRANTED_MIN - RECEIVES_RESERVED
  for (let round = 0; round < ROUNDS_UNREAD; round++) {
    const [near, far] = await connectEnds(adapter, adapter.cache)
    for (const end of [near, far]) {
      const { count } = fill(end, FRAME_LENGTH)
      if (count > usable || count < usable - 1) t.fail(`${count} frames under way, not ${usable}`)
    }
    // Now and then the last frames arrive while their receiver closes.
    if (round % 2 === 0) await until('the frames', () => far.progress().arrived >= usable)
    near.close()
    far.close()
    await eventually('the grants', () => adapter.sharedReceives.granted === granted)
  }
  // All that is granted is used at once.
  let sent = 0
  for (const end of stays) sent += fill(end, FRAME_LENGTH).count
  t.equal(sent, 2 * usable - 1, 'all but what the first word took')
  let taken = 0
  const sink = new Handler(() => {
    taken++
  })
  await until('all of them', () => {
    for (const end of stays) end.poll(sink, 64)
    return taken === sent
  })
  t.equal(receiverNotReadyCount(), 0)
  await closeAll(adapter, [...own, ...stays])
  t.equal(adapter.sharedReceives.granted, 0)
})

await t.test('where nothing is left to grant, a connection is refused, until something is', async t => {
  const depth = 1024
  const adapter = adapterLimitedTo(t, DEVICE_MAX_SRQ_WR, depth)
  const open = (): VerbsInterface => new VerbsInterface(adapter, adapter.cache, RING_SIZE_MIN)
  const ends = takeOwnReceives(adapter)
  const most = Math.floor((depth - RECEIVES_AT_ONCE) / RECEIVES_GRANTED_MIN)
  for (let i = 0; i < most; i++) ends.push(open())
  const refusal = { code: 'ERR_NIC_UNAVAILABLE', message: /rxe0 has no receives for more connections/ }
  t.throws(open, refusal)
  ends.pop()?.close()
  const again = await eventually('a grant', () => {
    try {
      return open()
    } catch {}
  })
  t.throws(open, refusal)
  await closeAll(adapter, [...ends, again])
})

await t.test(`the device has room for ${HELD_MIN} connections`, async t => {
  const ends: VerbsInterface[] = []
  try {
    while (ends.length <= HELD_MIN * 2) ends.push(new VerbsInterface(adapter, adapter.cache, RING_SIZE_MIN))
  } catch (error) {
    t.match(error, { code: 'ERR_NIC_UNAVAILABLE', message: /for more connections/ })
  }
  t.comment(`${ends.length} connections`)
  t.ok(ends.length >= HELD_MIN && ends.length <= HELD_MIN * 2)
  await closeAll(adapter, ends)
})

await t.test('a device without shared queues does without', async t => {
  const adapter = adapterLimitedTo(t, DEVICE_MAX_SRQ, 0)
  const own = takeOwnReceives(adapter)
  const [near, far] = await connectEnds(adapter, adapter.cache)
  t.equal(adapter.sharedReceives.granted, 0)
  t.equal(near.addressFor(Buffer.alloc(16), 0).receives, RECEIVES_MIN)
  sendFrame(near, Buffer.from('hello'))
  await until('the frame', () => far.poll(new Handler(() => {}), 1) === 1)
  await closeAll(adapter, [...own, near, far])
})

await t.test('receives that the device refuses break the connections that count on them', async t => {
  let isFull = false
  const adapter = adapterWith(t, real => ({
    deviceFunctions: (...at) => {
      const functions = real.deviceFunctions(...at)
      return {
        ...functions,
        postSharedReceive: (queue, request, bad) =>
          isFull ? constants.errno.ENOMEM : functions.postSharedReceive(queue, request, bad),
      }
    },
  }))
  const own = takeOwnReceives(adapter)
  isFull = true
  const { slabBytes } = adapter
  const open = (): VerbsInterface => new VerbsInterface(adapter, adapter.cache, RING_SIZE_MIN)
  t.throws(open, { code: 'ERR_NIC_SYSTEM', syscall: 'ibv_post_srq_recv' })
  t.equal(adapter.sharedReceives.granted, 0)
  t.equal(adapter.slabBytes, slabBytes)
  isFull = false
  const [near, far] = await connectEnds(adapter, adapter.cache)
  isFull = true
  const sink = new Handler(() => {})
  await until('the end', () => {
    if (near.state === 'open') sendFrame(near, Buffer.alloc(8))
    return far.poll(sink, 1) < 0
  })
  t.match(far.failure, {
    code: 'ERR_NIC_SYSTEM',
    syscall: 'ibv_post_srq_recv',
    message: /ibv_post_srq_recv ENOMEM/,
  })
  await closeAll(adapter, [...own, near, far])
})

await t.test('structures of the shared queue that lie elsewhere are refused', async t => {
  const real = verbsLibrary()
  const misled = Object.create(adapter, {
    verbs: { value: { ...real, readPointer: () => 1n } },
  }) as VerbsAdapter
  const receives = new SharedReceives(misled, 1024)
  for (let i = 0; i < OWN_RECEIVERS_MAX; i++) t.equal(receives.acquire(RECEIVES_MIN), undefined)
  t.throws(() => receives.acquire(RECEIVES_MIN), { message: /struct ibv_srq in another way/ })
  const moved: VerbsLibrary = {
    ...real,
    ibv_query_device: (context, attributes) => {
      const errno = real.ibv_query_device(context, attributes)
      attributes.copyWithin(4, 0)
      return errno
    },
  }
  const chosen = chooseDevice(real)
  if (!('context' in chosen)) throw new Error(chosen.reason)
  t.throws(() => sharedDepthOf(moved, chosen.context, chosen.port.device), {
    message: /struct ibv_device_attr in another way/,
  })
  t.ok(sharedDepthOf(real, chosen.context, chosen.port.device) > 0)
  real.ibv_close_device(chosen.context)
})
