/** Connected pairs of a driver, both ends in this process. */
import type { Test } from 'tap'
import type { Driver, MemoryOptions, VirtualInterface } from '../../nic/index.ts'
import { REACH } from '../support/placement.ts'

/** The smallest queue, so that a test goes round it often. */
export const QUEUE_SIZE = 64 * 1024

export type Pair = readonly [near: VirtualInterface, far: VirtualInterface]
/** Makes a connected pair that is closed when the test ends. */
export type MakePair = (t: Test) => Promise<Pair>
/** Makes memory that can be registered with that access. */
export type Allocate = (length: number, mayWrite?: boolean) => Uint8Array

export async function connectPair(t: Test, driver: Driver, memory: MemoryOptions = {}): Promise<Pair> {
  const offer = driver.offer({ queueSize: QUEUE_SIZE, ...memory, ...REACH })
  const connect = driver.connect(offer.blob, { ...memory, ...REACH })
  const [connecting, offering] = await Promise.all([connect, offer.accepted])
  t.teardown(() => {
    connecting.close()
    offering.close()
  })
  return [offering, connecting]
}
