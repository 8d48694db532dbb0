/** Segments of endpoints: which peers may map them, which access they get, and that a program keeps its own. */
import t, { type Test } from 'tap'
import { type Endpoint, type EndpointOptions, openEndpoint } from '../../am/index.ts'
import { drivers } from '../../nic/index.ts'
import { collectGarbage } from '../support/garbage.ts'
import { memfdMappingCount } from '../support/resources.ts'
import { until } from '../support/until.ts'

const availability = drivers.get('shm')?.availability()
if (!availability?.usable) {
  t.plan(0, `SKIPPED: shm cannot be used here: ${availability?.reason}`)
  process.exit()
}

const LENGTH = 1 << 20
const TAG = 77n
const HANDLER = 1
const RETURNED = 0
const MANY = 300

async function open(t: Test, options: EndpointOptions = {}): Promise<Endpoint> {
  const endpoint = await openEndpoint({ drivers: ['shm'], ...options })
  t.teardown(() => endpoint.close())
  return endpoint
}

/** The reason for which what `send` sends comes back; undefined if it is handled by `handler` of `at`. */
async function outcomeOf(near: Endpoint, at: Endpoint, send: () => number): Promise<string | undefined> {
  let outcome: { readonly reason?: string } | undefined
  near.setHandler(RETURNED, message => {
    outcome = { reason: String(message.reason) }
  })
  at.setHandler(HANDLER, () => {
    outcome = {}
  })
  t.equal(send(), 0)
  return (await until('the outcome', () => outcome)).reason
}

t.test('a peer that shows the tag maps the segment; one that does not, does not', async t => {
  const far = await open(t, { segment: LENGTH, tag: TAG })
  const own = memfdMappingCount()
  const near = await open(t)
  await near.map(0, far.name, 1n)
  const withRings = memfdMappingCount()
  t.equal(withRings, own + 2, 'the rings, once for each side')
  await near.map(1, far.name, TAG)
  t.equal(memfdMappingCount(), withRings + 1)
  await near.map(2, far.name, TAG)
  t.equal(memfdMappingCount(), withRings + 1, 'it is mapped once')
  t.equal(await outcomeOf(near, far, () => near.requestLong(0, HANDLER, new Uint8Array(8), 0)), 'BAD_TAG')
  t.equal(
    await outcomeOf(near, far, () => near.requestLong(1, HANDLER, new Uint8Array(LENGTH).fill(5), 0)),
    undefined,
  )
  t.ok(far.segment.every(byte => byte === 5))
})

t.test('what lies outside of the segment comes back, and nothing is written', async t => {
  const far = await open(t, { segment: LENGTH })
  const near = await open(t, { segment: LENGTH })
  await near.map(0, far.name)
  const long = new Uint8Array(LENGTH).fill(5)
  t.equal(await outcomeOf(near, far, () => near.requestLong(0, HANDLER, long, 1)), 'OUT_OF_BOUNDS')
  t.equal(await outcomeOf(near, near, () => near.get(0, HANDLER, 1, LENGTH, 0)), 'OUT_OF_BOUNDS')
  t.ok(far.segment.every(byte => byte === 0))
})

t.test('a segment to be read is got from, and takes no long message, however long', async t => {
  const far = await open(t, { segment: LENGTH, segmentAccess: 'read' })
  const near = await open(t, { segment: LENGTH })
  await near.map(0, far.name)
  far.segment.fill(6)
  for (const length of [10, LENGTH]) {
    const long = new Uint8Array(length).fill(5)
    t.equal(await outcomeOf(near, far, () => near.requestLong(0, HANDLER, long, 0)), 'OUT_OF_BOUNDS')
    t.equal(await outcomeOf(near, near, () => near.get(0, HANDLER, 0, length, 0)), undefined)
    t.ok(near.segment.subarray(0, length).every(byte => byte === 6))
  }
  t.ok(far.segment.every(byte => byte === 6))
})

t.test('a long reply finds a segment to be read closed, too', async t => {
  const near = await open(t, { segment: LENGTH, segmentAccess: 'read' })
  const far = await open(t)
  await near.map(0, far.name)
  await far.map(0, near.name)
  for (const length of [10, LENGTH]) {
    let reason: unknown
    far.setHandler(RETURNED, message => {
      reason = message.reason
    })
    far.setHandler(HANDLER, message => message.replyLong(2, new Uint8Array(length).fill(5), 0))
    near.setHandler(2, () => t.fail('it was put there'))
    near.request(0, HANDLER)
    t.equal(await until('the reply that comes back', () => reason), 'OUT_OF_BOUNDS')
  }
  t.ok(near.segment.every(byte => byte === 0))
})

t.test('options of a segment that cannot be right', async t => {
  for (const segmentAccess of ['write', 'none', 1]) {
    await t.rejects(openEndpoint({ segmentAccess } as unknown as EndpointOptions), { name: 'RangeError' })
  }
})

t.test('hundreds of segments, each of its own length', async t => {
  const near = await open(t)
  const fars = await Promise.all(Array.from({ length: MANY }, (_, i) => open(t, { segment: 70_000 + i })))
  const payload = new Uint8Array(70_000).fill(8)
  for (const [i, far] of fars.entries()) {
    await near.map(i, far.name)
    t.equal(near.requestLong(i, HANDLER, payload, i), 0)
  }
  for (const [i, { segment }] of fars.entries()) {
    t.ok(segment.subarray(i).every(byte => byte === 8) && segment.subarray(0, i).every(byte => byte === 0))
  }
  await near.close()
})

t.test('a program keeps its segment after the endpoint has closed', async t => {
  const far = await open(t, { segment: LENGTH })
  const near = await open(t)
  await near.map(0, far.name)
  t.equal(
    await outcomeOf(near, far, () => near.requestLong(0, HANDLER, new Uint8Array(LENGTH).fill(9), 0)),
    undefined,
  )
  const { segment } = far
  await far.close()
  await near.close()
  await collectGarbage()
  t.ok(segment.every(byte => byte === 9))
  segment.fill(1)
  try {
    structuredClone(segment, { transfer: [segment.buffer as ArrayBuffer] })
  } catch (error) {
    // Node 20 transfers nothing and says nothing.
    t.match(error, { name: 'DataCloneError' })
  }
  t.equal(segment.length, LENGTH, 'it cannot be given to another thread')
})
