/** Two ends over one adapter, and a cache, of the test's own making. */
import { NONCE_SIZE } from '../../nic/verbs/address-layout.ts'
import type { RegistrationCache } from '../../nic/verbs/registration-cache.ts'
import type { VerbsAdapter } from '../../nic/verbs/verbs-adapter.ts'
import { VerbsInterface } from '../../nic/verbs/verbs-interface.ts'

const RING_SIZE = 64 * 1024
const PSN = 1

export async function connectEnds(
  adapter: VerbsAdapter,
  cache: RegistrationCache,
): Promise<[VerbsInterface, VerbsInterface]> {
  const near = new VerbsInterface(adapter, cache, RING_SIZE)
  const far = new VerbsInterface(adapter, cache, RING_SIZE)
  const nonce = Buffer.alloc(NONCE_SIZE)
  near.expect(nonce)
  const here = near.addressFor(nonce, PSN)
  const there = far.addressFor(nonce, PSN)
  await Promise.all([
    new Promise<void>((resolve, reject) => {
      far.connect(there, here, false, error => (error === undefined ? resolve() : reject(error)))
    }),
    new Promise<void>((resolve, reject) => {
      near.connect(here, there, true, error => (error === undefined ? resolve() : reject(error)))
    }),
  ])
  return [near, far]
}
