/** A key of process memory may come from a hostile peer: it is checked when it is imported, not when it is used. */
import t, { type Test } from 'tap'
import {
  BROKEN,
  type Driver,
  drivers,
  OK,
  type Registration,
  type VirtualInterface,
} from '../../../nic/index.ts'
import { CompletionLog } from '../../support/frames.ts'

const KEY_ADDRESS = 8
const KEY_LENGTH = 16
const SIZE = 4096
const REVOCABLE_MAX = 4096
const READ_WRITE = { remoteRead: true, remoteWrite: true }
const ADDRESS_MAX = 2n ** 64n - 1n

const shm = drivers.get('shm') as Driver
const availability = shm.availability()
const skip = availability.usable ? false : availability.reason

async function openPair(t: Test): Promise<[VirtualInterface, VirtualInterface]> {
  const offer = shm.offer({ readsPeer: true })
  const pair = await Promise.all([offer.accepted, shm.connect(offer.blob, { readsPeer: true })])
  t.teardown(() => {
    for (const end of pair) end.close()
  })
  return pair
}

/** A key as the peer gives it, and then with another region. */
function keyOf(end: VirtualInterface, address: bigint, length: bigint): Buffer {
  const key = Buffer.from(end.register(new Uint8Array(SIZE), READ_WRITE).key)
  key.writeBigUInt64LE(address, KEY_ADDRESS)
  key.writeBigUInt64LE(length, KEY_LENGTH)
  return key
}

t.test('a region that goes beyond the last address is no key', { skip }, async t => {
  const [near, far] = await openPair(t)
  for (const [address, length] of [
    [ADDRESS_MAX, 1n],
    [ADDRESS_MAX, BigInt(SIZE)],
    [ADDRESS_MAX - 100n, 101n],
    [0n, 2n ** 53n],
  ] as const) {
    const key = keyOf(far, address, length)
    t.throws(() => near.importKey(key), { code: 'ERR_NIC_ARGUMENT' }, `${length} bytes at ${address}`)
  }
})

t.test('a region that ends there is one, and cannot be reached', { skip }, async t => {
  const [near, far] = await openPair(t)
  const remote = near.importKey(keyOf(far, ADDRESS_MAX - BigInt(SIZE), BigInt(SIZE)))
  const local = near.register(new Uint8Array(SIZE), { remoteRead: false, remoteWrite: false })
  const log = new CompletionLog()
  t.equal(near.rdmaRead(local, 0, remote, SIZE - 4, 4, 1), OK)
  t.equal(near.rdmaWrite(local, 0, remote, SIZE, 0, 2), OK)
  t.equal(near.rdmaWrite(local, 0, remote, 0, SIZE, 3), OK)
  t.equal(near.pollCompletions(log, 10), 3)
  t.strictSame(log.completions, [
    [1, BROKEN],
    [2, OK],
    [3, BROKEN],
  ])
  local.deregister()
})

t.test('what could not be revoked is not registered as revocable', { skip }, async t => {
  const [near] = await openPair(t)
  const revocable = { ...READ_WRITE, isRevocable: true }
  const registrations: Registration[] = []
  const register = (): number => registrations.push(near.register(new Uint8Array(8), revocable))
  for (let i = 0; i < REVOCABLE_MAX; i++) register()
  t.throws(register, { code: 'ERR_NIC_UNAVAILABLE' })
  t.ok(near.register(new Uint8Array(8), READ_WRITE).key, 'what need not be revoked is')
  registrations.pop()?.deregister()
  register()
  t.ok(registrations.every(registration => registration.revoke()))
  for (const registration of registrations) registration.deregister()
})
