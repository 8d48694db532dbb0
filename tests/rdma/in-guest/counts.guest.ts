/** What must not be measured in time in an emulator is counted: calls, registrations, garbage. */
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
import { seededRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { receiverNotReadyCount } from '../receiver-not-ready.ts'

const verbs = drivers.get('verbs') as Driver
const ROUND_TRIPS = 500
const WARM_UP = 300
const LOCAL_ONLY = { remoteRead: false, remoteWrite: false }
const READABLE = { remoteRead: true, remoteWrite: false }

async function connect(): Promise<[VirtualInterface, VirtualInterface]> {
  const offer = verbs.offer({ queueSize: 64 * 1024 })
  return await Promise.all([verbs.connect(offer.blob), offer.accepted])
}

function counters(): VerbsCounters {
  return { ...(verbsCounters() as VerbsCounters) }
}

await t.test(
  'a round trip of 64 bytes costs each side one post_send, at most one post_recv, and no memory',
  async t => {
    const [near, far] = await connect()
    const message = Buffer.alloc(64, 1)
    let arrived = 0
    const sink = new Handler(() => {
      arrived++
    })
    const goThereAndBack = (): void => {
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        const before = arrived
        sendFrame(from, message)
        while (arrived === before) to.poll(sink, 1)
      }
    }
    for (let i = 0; i < WARM_UP; i++) goThereAndBack()
    const before = counters()
    for (let i = 0; i < ROUND_TRIPS; i++) goThereAndBack()
    const after = counters()
    const perSide = (name: keyof VerbsCounters): number => (after[name] - before[name]) / (2 * ROUND_TRIPS)
    t.comment(
      JSON.stringify({
        sends: perSide('postSends'),
        receives: perSide('postReceives'),
        polls: perSide('polls'),
      }),
    )
    t.ok(perSide('postSends') <= 1, 'one post_send')
    t.ok(perSide('postReceives') <= 1, 'at most one post_recv')
    t.ok(perSide('polls') <= 2, 'at most two looks at the completion queue that find something')
    t.equal(after.registrations, before.registrations, 'no registration')
    near.close()
    far.close()
  },
)

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
  'an ArrayBuffer that was transferred away is found by nobody, and what a peer may write, or nobody uses again, ends',
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
  const [near, far] = await connect()
  const random = seededRandom(t)
  const target = new Uint8Array(64 * 1024)
  const remote = near.importKey(far.register(target, { remoteRead: true, remoteWrite: true }).key)
  const completions: number[] = []
  const sink = { handleCompletion: (_workId: number, status: number) => void completions.push(status) }
  const kept: Uint8Array[] = []
  let wrong = 0
  for (let i = 0; i < 300; i++) {
    // Some memory is used again, most is forgotten and its addresses may be somebody else's next time.
    const bytes =
      kept.length > 0 && random.chance(0.3)
        ? (kept[random.within(0, kept.length - 1)] as Uint8Array)
        : new Uint8Array(random.within(1, 64 * 1024))
    if (random.chance(0.1)) kept.push(bytes)
    bytes.fill(i & 0xff)
    const local = near.register(bytes, LOCAL_ONLY)
    near.rdmaWrite(local, 0, remote, 0, bytes.length, i)
    while (near.pollCompletions(sink, 1) === 0) {}
    local.deregister()
    if (target[0] !== (i & 0xff) || target[bytes.length - 1] !== (i & 0xff)) wrong++
  }
  t.equal(wrong, 0)
  t.ok(completions.every(status => status === 0))
  near.close()
  far.close()
})

await t.test('memory that cannot be pinned is an error that says so', async t => {
  const adapter = requireAdapter()
  t.throws(() => adapter.register(4096n, 4096, ACCESS_LOCAL_WRITE), {
    code: 'ERR_NIC_SYSTEM',
    message: /RLIMIT_MEMLOCK/,
  })
})
