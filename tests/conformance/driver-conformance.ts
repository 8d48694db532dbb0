/**
 * What every driver must do, whatever it is made of: the contract in nic/nic.ts as a suite. A driver's own test file
 * says how to get a connected pair, both ends in this process, and calls this.
 */
import type { Test } from 'tap'
import type { Driver, MemoryOptions } from '../../nic/index.ts'
import { testConnection } from './connection-conformance.ts'
import { testDoorbell } from './doorbell-conformance.ts'
import { testFrames } from './frames-conformance.ts'
import { testLifetime } from './lifetime-conformance.ts'
import { testOneSided } from './one-sided-conformance.ts'
import { type Allocate, connectPair, type MakePair } from './pairs.ts'

/** `memory`: what the ends agree on; with `sharesMemory` all that is registered for the peer is `allocate`d. */
export async function testDriver(t: Test, driver: Driver, memory: MemoryOptions = {}): Promise<void> {
  const availability = driver.availability()
  if (!availability.usable) {
    t.comment(`SKIPPED: ${driver.name} cannot be used here: ${availability.reason}`)
    await t.test(`${driver.name} can be used`, { skip: availability.reason }, async () => {})
    return
  }
  const makePair: MakePair = t => connectPair(t, driver, memory)
  const allocate: Allocate = (length, mayWrite = true) =>
    (memory.sharesMemory ? driver.allocate?.(length, mayWrite) : undefined) ?? new Uint8Array(length)
  const makeReversedPair: MakePair = async t => {
    const [offering, connecting] = await connectPair(t, driver, memory)
    return [connecting, offering]
  }
  const ways: [string, MakePair][] = [
    ['from the offering to the connecting side', makePair],
    ['from the connecting to the offering side', makeReversedPair],
  ]
  for (const [way, make] of ways) {
    await t.test(`frames ${way}`, t => testFrames(t, make))
    await t.test(`doorbell ${way}`, t => testDoorbell(t, make))
    await t.test(`one-sided access ${way}`, t => testOneSided(t, make, allocate))
  }
  await t.test('connection', t => testConnection(t, driver))
  await t.test('life and end', t => testLifetime(t, driver))
}
