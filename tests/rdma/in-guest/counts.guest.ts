/** What must not be measured in time in an emulator is counted: calls, registrations, garbage. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import {
  type Driver,
  drivers,
  type Offer,
  type VerbsCounters,
  type VirtualInterface,
  verbsCounters,
} from '../../../nic/index.ts'
import { BLOB_MAGIC, decodeAddress } from '../../../nic/verbs/address-layout.ts'
import { RING_SIZE_DEFAULT } from '../../../nic/verbs/frame-layout.ts'
import { ACCESS_LOCAL_WRITE } from '../../../nic/verbs/library-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { RegistrationCache } from '../../../nic/verbs/registration-cache.ts'
import { RINGS_PINNED_MAX } from '../../../nic/verbs/ring-size.ts'
import { Handler, sendFrame } from '../../support/frames.ts'
import { collectGarbage } from '../../support/garbage.ts'
import { seededRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { connectEnds } from '../connected-ends.ts'
import { receiverNotReadyCount } from '../receiver-not-ready.ts'

const verbs = drivers.get('verbs') as Driver
const ROUND_TRIPS = 500
const WARM_UP = 300
const TURNS = 100
/** For what was sent to arrive, in an emulator. */
const ARRIVAL_MS = 5
const PAGE_SIZE = 4096
const CHURN_ROUNDS = 200
const CHURN_MIN = 64 * 1024
const CHURN_MAX = 160 * 1024
/** Of mallopt. */
const M_MMAP_THRESHOLD = -3
const LOCAL_ONLY = { remoteRead: false, remoteWrite: false }
const READABLE = { remoteRead: true, remoteWrite: false }

async function connect(): Promise<[VirtualInterface, VirtualInterface]> {
  const offer = verbs.offer({ queueSize: 64 * 1024 })
  return await Promise.all([verbs.connect(offer.blob), offer.accepted])
}

function counters(): VerbsCounters {
  return { ...(verbsCounters() as VerbsCounters) }
}

type Counter = keyof VerbsCounters

/** What one side does for one round trip, on average. */
function perSideOf(
  before: VerbsCounters,
  after: VerbsCounters,
  roundTrips: number,
): (name: Counter) => number {
  return name => (after[name] - before[name]) / (2 * roundTrips)
}

/** 64 bytes from one end to the other, and back. */
class Exchange {
  readonly near: VirtualInterface
  readonly far: VirtualInterface
  #arrived = 0
  readonly #message = Buffer.alloc(64, 1)
  readonly #sink = new Handler(() => {
    this.#arrived++
  })

  constructor([near, far]: [VirtualInterface, VirtualInterface]) {
    this.near = near
    this.far = far
  }

  goThereAndBack(): void {
    this.#send(this.near)
    this.#await(this.far)
    this.#send(this.far)
    this.#await(this.near)
  }

  /** The same, but without a poll before there is a frame. */
  async takeTurns(): Promise<void> {
    this.#send(this.near)
    await pause(ARRIVAL_MS)
    this.#await(this.far)
    this.#send(this.far)
    await pause(ARRIVAL_MS)
    this.#await(this.near)
  }

  close(): void {
    this.near.close()
    this.far.close()
  }

  #send(from: VirtualInterface): void {
    sendFrame(from, this.#message)
  }

  #await(to: VirtualInterface): void {
    const before = this.#arrived
    while (this.#arrived === before) to.poll(this.#sink, 1)
  }
}

const { sharedReceives } = requireAdapter()
const own = new Exchange(await connect())
const others: [VirtualInterface, VirtualInterface][] = []
while (sharedReceives.granted === 0) others.push(await connect())
const sharing = new Exchange(others.pop() as [VirtualInterface, VirtualInterface])

for (const [what, exchange] of [
  ['of its own', own],
  ['of the shared queue', sharing],
] as const) {
  await t.test(
    `with receives ${what}, a round trip of 64 bytes costs each side one post_send, at most one post_recv, and no memory`,
    async t => {
      for (let i = 0; i < WARM_UP; i++) exchange.goThereAndBack()
      const before = counters()
      for (let i = 0; i < ROUND_TRIPS; i++) exchange.goThereAndBack()
      const after = counters()
      const perSide = perSideOf(before, after, ROUND_TRIPS)
      t.comment(
        JSON.stringify({
          sends: perSide('postSends'),
          receives: perSide('postReceives'),
          polls: perSide('polls'),
          emptyPolls: perSide('emptyPolls'),
        }),
      )
      t.ok(perSide('postSends') <= 1, 'one post_send')
      t.ok(perSide('postReceives') <= 0.05, 'one post_recv for many')
      // The wire of an emulator is slower than a poll: looks that find nothing are how this loop waits.
      t.ok(perSide('polls') <= 2, 'at most two looks at the completion queue that find something')
      t.equal(after.registrations, before.registrations, 'no registration')
    },
  )

  /*
   * Fair to a promise of two calls of poll_cq in all: the ends take turns, and each polls only when a frame has had
   * time to arrive, as on a busy network, where each poll finds something. Nothing waits by polling here, so empty
   * polls count, too. The time is not tested: the bound allows for polls that come too early.
   */
  await t.test(
    `with receives ${what}, a side that does not wait calls poll_cq at most twice for a round trip, in vain or not`,
    async t => {
      await exchange.takeTurns()
      const before = counters()
      for (let i = 0; i < TURNS; i++) await exchange.takeTurns()
      const perSide = perSideOf(before, counters(), TURNS)
      const polls = perSide('polls') + perSide('emptyPolls')
      t.comment(JSON.stringify({ polls, inVain: perSide('emptyPolls'), sends: perSide('postSends') }))
      t.ok(polls <= 2, `${polls} calls of poll_cq`)
      t.ok(perSide('postSends') <= 1 && perSide('postReceives') <= 1)
    },
  )
}

own.close()
sharing.close()
for (const end of others.flat()) end.close()
await until('the memory', () => requireAdapter().slabBytes === 0)

await t.test('a sender without credit is refused, and no receiver is found without a receive', async t => {
  const [near, far] = await connect()
  let sent = 0
  while (sendFrame(near, Buffer.alloc(0)) === 0) sent++
  t.ok(sent > 0 && sent <= 128, `${sent} frames of nothing`)
  let taken = 0
  const sink = new Handler(() => {
    taken++
  })
  await until('all of them', () => {
    far.poll(sink, 64)
    return taken === sent
  })
  await until('credit', () => near.hasRoom(0))
  t.equal(receiverNotReadyCount(), 0)
  near.close()
  far.close()
})

await t.test('the more is pinned for connections, the smaller the rings of the next', async t => {
  const offerOf = (queueSize?: number): { offer: Offer; ringSize: number | undefined } => {
    const offer = verbs.offer(queueSize === undefined ? {} : { queueSize })
    return { offer, ringSize: decodeAddress(BLOB_MAGIC, offer.blob)?.ringSize }
  }
  const offers = [offerOf(), offerOf(RINGS_PINNED_MAX / 4), offerOf()]
  t.strictSame(
    offers.map(({ ringSize }) => ringSize),
    [RING_SIZE_DEFAULT, RINGS_PINNED_MAX / 4, RING_SIZE_DEFAULT / 2],
  )
  for (const { offer } of offers) {
    offer.cancel()
    await t.rejects(offer.accepted)
  }
  await until('the memory', () => requireAdapter().slabBytes === 0)
  const last = offerOf()
  t.equal(last.ringSize, RING_SIZE_DEFAULT)
  last.offer.cancel()
  await t.rejects(last.offer.accepted)
})

await t.test('to work with the same memory again registers nothing', async t => {
  const [near, far] = await connect()
  const bytes = new Uint8Array(100_000)
  const use = (): void => near.register(bytes, READABLE).deregister()
  use()
  const before = counters()
  for (let i = 0; i < 100; i++) use()
  const after = counters()
  t.equal(after.registrations, before.registrations)
  t.equal(after.cacheHits - before.cacheHits, 100)
  near.close()
  far.close()
})

await t.test('the cache extends what is too small, and forgets the oldest', async t => {
  const adapter = requireAdapter()
  const cache = new RegistrationCache(adapter, 64 * 1024, 4)
  const memory = new ArrayBuffer(32 * 1024)
  const begin = counters()
  cache.release(cache.acquire(new Uint8Array(memory, 8192, 4096), LOCAL_ONLY))
  cache.release(cache.acquire(new Uint8Array(memory, 8192, 4096), LOCAL_ONLY))
  cache.release(cache.acquire(new Uint8Array(memory, 4096, 4096), LOCAL_ONLY))
  const grown = cache.acquire(new Uint8Array(memory, 5000, 7000), LOCAL_ONLY)
  const end = counters()
  t.equal(end.cacheMisses - begin.cacheMisses, 1)
  t.equal(end.cacheExtensions - begin.cacheExtensions, 1)
  t.equal(end.cacheHits - begin.cacheHits, 2)
  t.equal(cache.entryCount, 1)
  for (let i = 0; i < 8; i++)
    cache.release(cache.acquire(new Uint8Array(new ArrayBuffer(16 * 1024)), LOCAL_ONLY))
  t.ok(cache.pinnedBytes <= 64 * 1024 && cache.entryCount <= 4)
  t.equal(
    cache.acquire(new Uint8Array(memory, 5000, 10), LOCAL_ONLY),
    grown,
    'what is in use is not given up',
  )
  cache.release(grown)
  cache.release(grown)
  cache.clear()
  t.equal(cache.entryCount, 0)
  t.equal(cache.pinnedBytes, 0)
})

await t.test(
  'an ArrayBuffer that was transferred away is not found again, and memory that a peer may write, or that is used once, is not kept',
  async t => {
    const adapter = requireAdapter()
    const cache = new RegistrationCache(adapter)
    const memory = new ArrayBuffer(8192)
    const entry = cache.acquire(new Uint8Array(memory), LOCAL_ONLY)
    structuredClone(memory, { transfer: [memory] })
    t.ok(entry.isDetached)
    cache.release(entry)
    t.equal(cache.entryCount, 0)
    const once = cache.acquire(new Uint8Array(8192), { ...LOCAL_ONLY, isOnce: true })
    cache.release(once)
    t.equal(cache.entryCount, 0)
    const written = cache.acquire(new Uint8Array(8192), { remoteRead: true, remoteWrite: true })
    cache.release(written)
    t.equal(cache.entryCount, 0)
  },
)

await t.test('under churn the memory that the device reads is the memory that was meant', async t => {
  const adapter = requireAdapter()
  const { libc } = adapter.verbs
  // Each buffer has pages of its own, which go back to the kernel with it: its addresses come back with other pages.
  t.equal(libc.mallopt?.(M_MMAP_THRESHOLD, CHURN_MIN), 1)
  const cache = new RegistrationCache(adapter, 512 * 1024, 8)
  const [near, far] = await connectEnds(adapter, cache)
  const random = seededRandom(t)
  const target = new Uint8Array(CHURN_MAX)
  const written = far.register(target, { remoteRead: true, remoteWrite: true })
  const remote = near.importKey(written.key)
  const completions: number[] = []
  const sink = { handleCompletion: (_workId: number, status: number) => void completions.push(status) }
  const seen = new Map<bigint, number>()
  const before = counters()
  let again = 0
  let wrong = 0
  const kept: Uint8Array[] = []
  const write = (round: number): void => {
    // Some memory is used again; most is forgotten, and what comes after it may have its addresses.
    const isKept = kept.length > 0 && random.chance(0.3)
    const bytes = isKept
      ? random.pick(kept as [Uint8Array, ...Uint8Array[]])
      : new Uint8Array(PAGE_SIZE * random.within(CHURN_MIN / PAGE_SIZE, CHURN_MAX / PAGE_SIZE))
    if (!isKept) {
      const address = libc.address(bytes)
      if (seen.has(address)) again++
      seen.set(address, round)
      if (random.chance(0.05)) kept.push(bytes)
    }
    bytes.fill(1 + (round % 255))
    const local = near.register(bytes, LOCAL_ONLY)
    near.rdmaWrite(local, 0, remote, 0, bytes.length, round)
    while (near.pollCompletions(sink, 1) === 0) {}
    local.deregister()
    if (Buffer.compare(bytes, target.subarray(0, bytes.length)) !== 0) wrong++
  }
  for (let round = 0; round < CHURN_ROUNDS; round++) {
    write(round)
    if (round % 10 === 9) await collectGarbage()
  }
  const evictions = counters().cacheEvictions - before.cacheEvictions
  t.comment(JSON.stringify({ evictions, again, hits: counters().cacheHits - before.cacheHits }))
  t.ok(evictions > 0, 'the cache gave up memory')
  t.ok(again > 0, 'addresses came back as other memory')
  t.equal(wrong, 0)
  t.equal(completions.length, CHURN_ROUNDS)
  t.ok(completions.every(status => status === 0))
  written.deregister()
  near.close()
  far.close()
  cache.clear()
})

await t.test('memory that cannot be pinned is an error that says so', async t => {
  const adapter = requireAdapter()
  t.throws(() => adapter.register(4096n, 4096, ACCESS_LOCAL_WRITE), {
    code: 'ERR_NIC_SYSTEM',
    message: /RLIMIT_MEMLOCK/,
  })
})
