import t from 'tap'
import { UNDELIVERABLE, type UndeliverableReason, undeliverableReason } from '../../am/undeliverable.ts'

/** As docs/protocol.md has them: they are on the wire. */
const NUMBERS: Record<UndeliverableReason, number> = {
  BAD_TAG: 1,
  NO_SUCH_HANDLER: 2,
  NO_SUCH_ENDPOINT: 3,
  OUT_OF_BOUNDS: 4,
  TOO_LONG: 5,
  PEER_DEAD: 6,
  PEER_CLOSED: 7,
}

t.test('each reason has the number that the protocol says, and each number its reason', async t => {
  t.strictSame(UNDELIVERABLE, NUMBERS)
  for (const [reason, number] of Object.entries(NUMBERS)) t.equal(undeliverableReason(number), reason)
})

t.test('other numbers are no reason', async t => {
  for (const number of [0, 8, 255, 0xffff, -1, 1.5, Number.NaN]) {
    t.equal(undeliverableReason(number), undefined, `${number}`)
  }
})
