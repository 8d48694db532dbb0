/** However many sockets a peer opens and fills, what lies unread stays within the budget, and within the peer's share of it. */
import t from 'tap'
import { PortShare, SyntheticPorts } from '../../../fastsockets/host/synthetic-ports.ts'
import { PromisedPorts } from '../../../fastsockets/stream/promised-ports.ts'
import { PORTS_PROMISED_MAX, SHRUNK_WINDOW, WINDOW } from '../../../fastsockets/stream/stream-layout.ts'
import {
  isOverBudget,
  PEER_UNREAD_MIN,
  setUnreadBudget,
  shareOf,
  UNREAD_BUDGET_MIN,
  UnreadShare,
} from '../../../fastsockets/stream/unread-budget.ts'

const SOCKETS = 2000
const PEERS = 64

/** Grants windows for that many sockets; returns how many bytes in all. */
function grant(share: UnreadShare, socketCount: number): number {
  let all = 0
  for (let i = 0; i < socketCount; i++) {
    const window = share.windowToGrant()
    share.noteGranted(window)
    all += window
  }
  return all
}

for (const budget of [UNREAD_BUDGET_MIN, 2 ** 30, 8 * 2 ** 30])
  t.test(`${SOCKETS} windows of one peer, and of ${PEERS}, of a budget of ${budget} bytes`, async t => {
    setUnreadBudget(budget)
    t.teardown(() => setUnreadBudget())
    const share = shareOf(budget)
    t.ok(share <= Math.max(budget / 16, Math.min(PEER_UNREAD_MIN, budget / 2)))
    const full = Math.min(WINDOW, share / 16)
    const peer = new UnreadShare()
    t.equal(peer.windowToGrant(), full, 'a few have all that there is')
    const all = grant(peer, SOCKETS)
    t.ok(all <= share + SOCKETS * SHRUNK_WINDOW, `${all} bytes of one peer`)
    t.ok(peer.windowToGrant() >= SHRUNK_WINDOW)

    const peers = Array.from({ length: PEERS }, () => new UnreadShare())
    const others = peers.map(one => grant(one, SOCKETS / PEERS))
    t.ok((others[0] as number) > (SOCKETS / PEERS) * SHRUNK_WINDOW, 'another has more than the least')
    const sum = others.reduce((left, right) => left + right, all)
    t.ok(sum <= budget + 2 * SOCKETS * SHRUNK_WINDOW, `${sum} bytes of all`)

    peer.noteGranted(-all)
    for (const [i, one] of peers.entries()) one.noteGranted(-(others[i] as number))
    t.equal(peer.windowToGrant(), full, 'what was given back is there again')
  })

t.test('windows of twice the budget leave none for a new socket', async t => {
  setUnreadBudget(UNREAD_BUDGET_MIN)
  t.teardown(() => setUnreadBudget())
  const peer = new UnreadShare()
  peer.noteGranted(2 * UNREAD_BUDGET_MIN - SHRUNK_WINDOW)
  t.equal(peer.mayGrant(), true)
  peer.noteGranted(SHRUNK_WINDOW)
  t.equal(peer.mayGrant(), false)
  t.equal(new UnreadShare().mayGrant(), false, 'of whatever peer')
  peer.noteGranted(-2 * UNREAD_BUDGET_MIN)
  t.equal(peer.mayGrant(), true)
})

t.test('a peer beyond its share is over the budget, and no other', async t => {
  setUnreadBudget(2 ** 30)
  t.teardown(() => setUnreadBudget())
  const hog = new UnreadShare()
  const other = new UnreadShare()
  hog.noteKept(shareOf(2 ** 30) + 1)
  t.teardown(() => hog.noteKept(-shareOf(2 ** 30) - 1))
  t.equal(hog.isOverBudget(), true)
  t.equal(hog.windowToGrant(), SHRUNK_WINDOW)
  t.equal(other.isOverBudget(), false)
  t.equal(other.windowToGrant(), WINDOW)
  t.equal(isOverBudget(), false, 'new peers are welcome')
  setUnreadBudget(PEER_UNREAD_MIN)
  t.equal(other.isOverBudget(), true, 'the budget of the process holds for all')
  t.equal(isOverBudget(), true)
})

t.test(`${SOCKETS} sockets of one peer, each accepted with promises for the next`, async t => {
  setUnreadBudget(UNREAD_BUDGET_MIN)
  t.teardown(() => setUnreadBudget())
  const channel = { portShare: new PortShare(new SyntheticPorts()), unread: new UnreadShare() }
  const promised = new PromisedPorts(PORTS_PROMISED_MAX, channel)
  let all = 0
  let promisedCount = 0
  for (let i = 0; i < SOCKETS; i++) {
    const { port, window: before } = promised.dequeue()
    if (port > 0) promisedCount++
    const window = Math.max(before, channel.unread.windowToGrant())
    channel.unread.noteGranted(window)
    promised.promise(window)
    all += window
  }
  t.ok(all <= shareOf(UNREAD_BUDGET_MIN) + SOCKETS * SHRUNK_WINDOW, `${all} bytes`)
  t.ok(promisedCount > SOCKETS - PEERS, `${promisedCount} had a promise`)
  promised.clear()
  channel.unread.noteGranted(-all)
})

t.test('windows that are promised with a port count as granted until they are used or dropped', async t => {
  // The share is half of it, and a sixteenth of that a window: any more that is granted shrinks the next.
  setUnreadBudget(32 * WINDOW)
  t.teardown(() => setUnreadBudget())
  const channel = { portShare: new PortShare(new SyntheticPorts()), unread: new UnreadShare() }
  const promised = new PromisedPorts(PORTS_PROMISED_MAX, channel)
  const shrunkBy = (): number => 16 * (WINDOW - channel.unread.windowToGrant())
  t.equal(promised.promise(WINDOW).filter(port => port > 0).length, 4)
  t.equal(shrunkBy(), 4 * WINDOW)
  t.equal(promised.dequeue().window, WINDOW)
  t.equal(shrunkBy(), 3 * WINDOW)
  promised.clear()
  t.equal(shrunkBy(), 0)
  t.equal(promised.dequeue().window, 0)
})
