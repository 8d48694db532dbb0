import type { Test } from 'tap'
import {
  type Access,
  BROKEN,
  CLOSED,
  NO_RESOURCE,
  OK,
  OUT_OF_BOUNDS,
  type Registration,
  type RemoteMemory,
  UNSUPPORTED,
  type VirtualInterface,
} from '../../nic/index.ts'
import { CompletionLog, fillPattern, patterned } from '../support/frames.ts'
import { collectGarbage } from '../support/garbage.ts'
import { eventually } from '../support/until.ts'
import type { Allocate, MakePair, Pair } from './pairs.ts'

const READ_WRITE = { remoteRead: true, remoteWrite: true }
const LOCAL_ONLY = { remoteRead: false, remoteWrite: false }
const SIZE = 4096

interface Memories {
  readonly pair: Pair
  /** Near's own registered memory. */
  readonly local: Registration
  /** Far's registered memory, as far has it and as near names it. */
  readonly registration: Registration
  readonly remoteBytes: Uint8Array
  readonly remote: RemoteMemory
}

export async function testOneSided(
  t: Test,
  makePair: MakePair,
  allocate: Allocate = length => new Uint8Array(length),
): Promise<void> {
  const [near] = await makePair(t)
  const { rdmaRead, rdmaWrite, rdmaReason } = near.capabilities
  if (rdmaRead && rdmaWrite) {
    t.equal(rdmaReason, undefined)
    await testKeys(t, makePair, allocate)
    await testTransfers(t, makePair, allocate)
    await testRevocation(t, makePair, allocate)
    await testLimits(t, makePair, allocate)
    await testCompletions(t, makePair, allocate)
  } else {
    await testUnsupported(t, makePair, allocate)
  }
}

async function openMemories(
  t: Test,
  makePair: MakePair,
  allocate: Allocate,
  access: Access = READ_WRITE,
): Promise<Memories> {
  const pair = await makePair(t)
  const [near, far] = pair
  const remoteBytes = fillPattern(allocate(SIZE, access.remoteWrite), 1)
  const local = near.register(patterned(SIZE, 2), LOCAL_ONLY)
  const registration = far.register(remoteBytes, access)
  const remote = near.importKey(registration.key)
  t.teardown(() => {
    local.deregister()
    registration.deregister()
  })
  return { pair, local, registration, remoteBytes, remote }
}

async function testKeys(t: Test, makePair: MakePair, allocate: Allocate): Promise<void> {
  await t.test('a key tells the length and the access rights of the memory', async t => {
    const [near, far] = await makePair(t)
    for (const access of [READ_WRITE, { remoteRead: true, remoteWrite: false }]) {
      const registration = far.register(allocate(123, access.remoteWrite), access)
      const remote = near.importKey(registration.key)
      t.equal(remote.length, 123)
      t.match(remote.access, access)
      registration.deregister()
    }
  })

  await t.test('anything but a key is ERR_NIC_ARGUMENT', async t => {
    const [near, far] = await makePair(t)
    const { key } = far.register(allocate(8), READ_WRITE)
    const defaced = Buffer.from(key)
    defaced[0] = ~(defaced[0] as number)
    const strange = [
      new Uint8Array(0),
      new Uint8Array(1),
      new Uint8Array(key.length),
      key.subarray(1),
      defaced,
    ]
    for (const bytes of [...strange, Buffer.concat([key, key])]) {
      t.throws(() => near.importKey(bytes), { code: 'ERR_NIC_ARGUMENT' }, `${bytes.length} bytes`)
    }
  })

  await t.test('registered memory stays referenced until it is deregistered', async t => {
    const [near] = await makePair(t)
    const held: { deregister?: () => void; bytes?: WeakRef<Uint8Array> } = {}
    const registerAndForget = (): void => {
      const bytes = allocate(SIZE)
      // The peer that has the key holds nothing in this process.
      near.register(bytes, READ_WRITE)
      held.bytes = new WeakRef(bytes)
    }
    registerAndForget()
    await collectGarbage()
    t.not(held.bytes?.deref(), undefined, 'the peer may still write to it')
  })
}

async function testRevocation(t: Test, makePair: MakePair, allocate: Allocate): Promise<void> {
  await t.test('memory that was revoked is neither read nor written, or nothing is promised', async t => {
    const access = { ...READ_WRITE, isRevocable: true }
    const [, owner] = await makePair(t)
    if (!tryRegister(t, owner, allocate(SIZE), access)) return
    const { pair, local, registration, remoteBytes, remote } = await openMemories(
      t,
      makePair,
      allocate,
      access,
    )
    const [near] = pair
    const log = new CompletionLog()
    t.equal(near.rdmaRead(local, 0, remote, 0, SIZE, 1), OK)
    t.equal(near.rdmaWrite(local, 0, remote, 0, SIZE, 2), OK)
    await eventually('both', () => {
      near.pollCompletions(log, 10)
      return log.completions.length === 2
    })
    t.strictSame(log.completions.splice(0), [
      [1, OK],
      [2, OK],
    ])
    if (!registration.revoke()) return
    // The program uses it for something else.
    remoteBytes.fill(99)
    t.equal(near.rdmaRead(local, 0, remote, 0, SIZE, 3), OK)
    t.equal(near.rdmaWrite(local, 0, remote, 0, SIZE, 4), OK)
    t.equal(near.pollCompletions(log, 10), 2)
    t.strictSame(log.completions.splice(0), [
      [3, BROKEN],
      [4, BROKEN],
    ])
    t.ok(remoteBytes.every(byte => byte === 99))
    t.equal(near.state, 'open')
    // Whatever has its place of registration now is something else.
    registration.deregister()
    const next = pair[1].register(fillPattern(allocate(SIZE), 3), access)
    t.equal(near.rdmaRead(local, 0, remote, 0, SIZE, 5), OK)
    t.equal(near.rdmaRead(local, 0, near.importKey(next.key), 0, SIZE, 6), OK)
    t.equal(near.pollCompletions(log, 10), 2)
    t.strictSame(log.completions, [
      [5, BROKEN],
      [6, OK],
    ])
    t.ok(Buffer.from(next.bytes).equals(local.bytes))
    next.deregister()
  })
}

async function testTransfers(t: Test, makePair: MakePair, allocate: Allocate): Promise<void> {
  await t.test('rdmaWrite moves bytes into the memory of the peer, and nothing beside them', async t => {
    const { pair, local, remoteBytes, remote } = await openMemories(t, makePair, allocate)
    const expected = Buffer.from(remoteBytes)
    Buffer.from(local.bytes).copy(expected, 100, 10, 10 + 1000)
    t.equal(pair[0].rdmaWrite(local, 10, remote, 100, 1000, 77), OK)
    const log = new CompletionLog()
    t.equal(pair[0].pollCompletions(log, 10), 1)
    t.strictSame(log.completions, [[77, OK]])
    t.ok(expected.equals(remoteBytes))
    t.equal(pair[1].pollCompletions(log, 10), 0, 'the peer hears nothing of it')
  })

  await t.test('rdmaRead moves bytes from the memory of the peer, and nothing beside them', async t => {
    const { pair, local, remoteBytes, remote } = await openMemories(t, makePair, allocate)
    const expected = Buffer.from(local.bytes)
    Buffer.from(remoteBytes).copy(expected, 5, 2000, 2000 + 96)
    t.equal(pair[0].rdmaRead(local, 5, remote, 2000, 96, 2 ** 40), OK)
    const log = new CompletionLog()
    t.equal(pair[0].pollCompletions(log, 10), 1)
    t.strictSame(log.completions, [[2 ** 40, OK]])
    t.ok(expected.equals(local.bytes))
  })

  await t.test('memory of any kind can be registered: small, within a pool, a part, large', async t => {
    const [near, far] = await makePair(t)
    const kinds = [1, 8, 63, 64, 65, 3 << 20].map(length => allocate(length))
    kinds.push(Buffer.from('in the pool of Buffer'), allocate(100).subarray(33, 66))
    for (const bytes of kinds) {
      const local = near.register(patterned(bytes.length, 9), LOCAL_ONLY)
      const registration = tryRegister(t, far, bytes, READ_WRITE)
      if (registration === undefined) continue
      const remote = near.importKey(registration.key)
      await collectGarbage()
      t.equal(near.rdmaWrite(local, 0, remote, 0, bytes.length, 0), OK)
      t.ok(patterned(bytes.length, 9).equals(bytes), `${bytes.length} bytes`)
    }
  })

  await t.test('nothing at all can be moved, also at the end of the memory', async t => {
    const { pair, local, remote } = await openMemories(t, makePair, allocate)
    t.equal(pair[0].rdmaWrite(local, SIZE, remote, SIZE, 0, 1), OK)
    t.equal(pair[0].rdmaRead(local, 0, remote, 0, 0, 2), OK)
    const log = new CompletionLog()
    pair[0].pollCompletions(log, 10)
    t.strictSame(log.completions, [
      [1, OK],
      [2, OK],
    ])
  })
}

async function testLimits(t: Test, makePair: MakePair, allocate: Allocate): Promise<void> {
  await t.test('what does not lie within both memories is OUT_OF_BOUNDS and moves nothing', async t => {
    const { pair, local, remoteBytes, remote } = await openMemories(t, makePair, allocate)
    const before = [Buffer.from(local.bytes), Buffer.from(remoteBytes)]
    const strange: [localOffset: number, remoteOffset: number, length: number][] = [
      [0, 0, SIZE + 1],
      [1, 0, SIZE],
      [0, 1, SIZE],
      [SIZE + 1, 0, 0],
      [0, SIZE + 1, 0],
      [-1, 0, 2],
      [0, -1, 2],
      [0, 0, -1],
      [8, 8, -4],
      [0.5, 0, 1],
      [0, 0, 1.5],
      [0, Number.NaN, 1],
      [0, 0, Number.POSITIVE_INFINITY],
      [0, 2 ** 53, 1],
    ]
    for (const [localOffset, remoteOffset, length] of strange) {
      const say = `${localOffset}, ${remoteOffset}, ${length}`
      t.equal(pair[0].rdmaRead(local, localOffset, remote, remoteOffset, length, 1), OUT_OF_BOUNDS, say)
      t.equal(pair[0].rdmaWrite(local, localOffset, remote, remoteOffset, length, 1), OUT_OF_BOUNDS, say)
    }
    t.strictSame([Buffer.from(local.bytes), Buffer.from(remoteBytes)], before)
    t.equal(pair[0].pollCompletions(new CompletionLog(), 10), 0)
  })

  await t.test('memory is neither read nor written against its access rights', async t => {
    const readable = await openMemories(t, makePair, allocate, { remoteRead: true, remoteWrite: false })
    const before = Buffer.from(readable.remoteBytes)
    t.ok(readable.pair[0].rdmaWrite(readable.local, 0, readable.remote, 0, 8, 1) < 0)
    t.ok(before.equals(readable.remoteBytes))
    const writeOnly = { remoteRead: false, remoteWrite: true }
    if (tryRegister(t, readable.pair[1], allocate(SIZE), writeOnly)) {
      const writable = await openMemories(t, makePair, allocate, writeOnly)
      const kept = Buffer.from(writable.local.bytes)
      t.ok(writable.pair[0].rdmaRead(writable.local, 0, writable.remote, 0, 8, 1) < 0)
      t.ok(kept.equals(writable.local.bytes))
    }
    t.equal(readable.pair[0].rdmaRead(readable.local, 0, readable.remote, 0, 8, 1), OK)
  })

  await t.test('a closed interface moves nothing', async t => {
    const { pair, local, remote } = await openMemories(t, makePair, allocate)
    pair[0].close()
    t.equal(pair[0].rdmaRead(local, 0, remote, 0, 8, 1), CLOSED)
    t.equal(pair[0].rdmaWrite(local, 0, remote, 0, 8, 1), CLOSED)
    t.equal(pair[0].pollCompletions(new CompletionLog(), 10), 0)
  })
}

async function testCompletions(t: Test, makePair: MakePair, allocate: Allocate): Promise<void> {
  await t.test('a full completion queue refuses with NO_RESOURCE, and accepts again once polled', async t => {
    const { pair, local, remoteBytes, remote } = await openMemories(t, makePair, allocate)
    const [near] = pair
    let capacity = 0
    while (near.rdmaWrite(local, 0, remote, 0, 1, capacity) === OK) capacity++
    remoteBytes[0] = 0x55
    t.equal(near.rdmaWrite(local, 0, remote, 0, 1, capacity), NO_RESOURCE)
    t.equal(remoteBytes[0], 0x55, 'what was refused moved nothing')

    const log = new CompletionLog()
    t.equal(near.pollCompletions(log, 3), 3, 'the limit is kept')
    t.equal(near.rdmaWrite(local, 0, remote, 0, 1, capacity), OK)
    t.equal(near.pollCompletions(log, capacity * 2), capacity - 2)
    t.equal(near.pollCompletions(log, 1), 0)
    t.strictSame(
      log.completions.map(([workId]) => workId),
      Array.from({ length: capacity + 1 }, (_, i) => i),
    )
  })
}

async function testUnsupported(t: Test, makePair: MakePair, allocate: Allocate): Promise<void> {
  await t.test('a driver that claims no one-sided access refuses with UNSUPPORTED and says why', async t => {
    const [near, far] = await makePair(t)
    const { rdmaRead, rdmaWrite, rdmaReason } = near.capabilities
    t.ok(rdmaReason)
    const local = near.register(patterned(SIZE, 2), LOCAL_ONLY)
    const registration = tryRegister(t, far, allocate(SIZE), READ_WRITE)
    // Whatever a peer may have made up.
    const access = { ...READ_WRITE }
    const remote = registration ? near.importKey(registration.key) : { length: SIZE, access }
    if (!rdmaRead) t.equal(near.rdmaRead(local, 0, remote, 0, 8, 1), UNSUPPORTED)
    if (!rdmaWrite) t.equal(near.rdmaWrite(local, 0, remote, 0, 8, 1), UNSUPPORTED)
    t.equal(near.pollCompletions(new CompletionLog(), 10), 0)
  })
}

/** Undefined, and says so, if the driver cannot give the peer that access to that memory. */
function tryRegister(
  t: Test,
  end: VirtualInterface,
  bytes: Uint8Array,
  access: Access,
): Registration | undefined {
  try {
    return end.register(bytes, access)
  } catch (error) {
    t.match(error, { code: 'ERR_NIC_UNAVAILABLE' })
    t.comment(`not registered by ${end.driver}: ${(error as Error).message}`)
    return undefined
  }
}
