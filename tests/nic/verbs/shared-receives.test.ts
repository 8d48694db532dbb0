import t from 'tap'
import {
  BLOB_MAGIC,
  decodeAddress,
  type EndAddress,
  encodeAddress,
} from '../../../nic/verbs/address-layout.ts'
import { SHARED_RECEIVES_MAX } from '../../../nic/verbs/device-limits.ts'
import { RECEIVES_GRANTED_MIN, RECEIVES_MAX, RECEIVES_MIN } from '../../../nic/verbs/frame-layout.ts'
import { RECEIVES_AT_ONCE } from '../../../nic/verbs/receive-chain.ts'
import { grantOf, OWN_RECEIVERS_MAX } from '../../../nic/verbs/shared-receives.ts'

const CHANNELS_MAX = 1024

/** What connections are granted one after the other, until nothing is left. */
function grantsOf(depth: number): number[] {
  const grants: number[] = []
  for (let left = depth; ; ) {
    const count = grantOf(left, RECEIVES_MAX)
    if (count === 0) return grants
    grants.push(count)
    left -= count
  }
}

t.test('of the largest queue all peers that sockets have get something', async t => {
  const grants = grantsOf(SHARED_RECEIVES_MAX - RECEIVES_AT_ONCE)
  t.ok(grants.length + OWN_RECEIVERS_MAX >= CHANNELS_MAX, `${grants.length} grants`)
  t.ok((grants[0] as number) > RECEIVES_GRANTED_MIN, 'the first of them more')
  t.ok(
    grants.every((count, i) => i === 0 || count <= (grants[i - 1] as number)),
    'never more than before',
  )
  t.equal(grants.at(-1), RECEIVES_GRANTED_MIN)
})

t.test('no more is granted than there is, and no end gets more than its own queue would give', async t => {
  for (const depth of [0, RECEIVES_GRANTED_MIN - 1, RECEIVES_GRANTED_MIN, 1000, 8160]) {
    const sum = grantsOf(depth).reduce((all, count) => all + count, 0)
    t.ok(sum <= depth && depth - sum < RECEIVES_GRANTED_MIN, `${sum} of ${depth}`)
  }
  t.equal(grantOf(1e6, RECEIVES_MIN), RECEIVES_MIN)
})

t.test('an address says how many receives there are, within limits', async t => {
  const end: EndAddress = {
    nonce: Buffer.alloc(16, 1),
    number: 17,
    psn: 5,
    gid: Buffer.alloc(16, 2),
    lid: 0,
    mtu: 5,
    linkLayer: 2,
    ringSize: 65536,
    receives: RECEIVES_GRANTED_MIN,
    rkey: 3,
    address: 4096,
  }
  const decode = (receives: number): number | undefined =>
    decodeAddress(BLOB_MAGIC, encodeAddress(BLOB_MAGIC, { ...end, receives }))?.receives
  for (const count of [16, 32, 64, 128, 256]) t.equal(decode(count), count)
  for (const count of [0, 1, 8, 24, 129, 512, 2 ** 31, 2 ** 32 - 1]) t.equal(decode(count), undefined)
})
