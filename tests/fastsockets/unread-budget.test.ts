/** However many sockets a peer opens and fills, what lies unread stays within the budget. */
import t from 'tap'
import { PortShare, SyntheticPorts } from '../../fastsockets/host/synthetic-ports.ts'
import { PromisedPorts } from '../../fastsockets/stream/promised-ports.ts'
import { PORTS_PROMISED_MAX, SHRUNK_WINDOW, WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import {
  noteGranted,
  setUnreadBudget,
  UNREAD_BUDGET_MIN,
  windowToGrant,
} from '../../fastsockets/stream/unread-budget.ts'

const SOCKETS = 2000

for (const budget of [UNREAD_BUDGET_MIN, 2 ** 30, 8 * 2 ** 30])
  t.test(`${SOCKETS} windows, of a budget of ${budget} bytes`, async t => {
    setUnreadBudget(budget)
    t.teardown(() => setUnreadBudget())
    t.equal(windowToGrant(), WINDOW, 'a few have all that there is')
    let all = 0
    let least = WINDOW
    for (let i = 0; i < SOCKETS; i++) {
      const window = windowToGrant()
      noteGranted(window)
      all += window
      least = Math.min(least, window)
    }
    t.ok(all <= budget + SOCKETS * SHRUNK_WINDOW, `${all} bytes`)
    t.ok(least >= SHRUNK_WINDOW)
    noteGranted(-all)
    t.equal(windowToGrant(), WINDOW, 'what was given back is there again')
  })

t.test('windows that are promised with a port count as granted until they are used or dropped', async t => {
  // A sixteenth of it is a window: any more that is granted shrinks the next.
  setUnreadBudget(16 * WINDOW)
  t.teardown(() => setUnreadBudget())
  const share = new PortShare(new SyntheticPorts())
  const promised = new PromisedPorts(PORTS_PROMISED_MAX, () => share)
  const shrunkBy = (): number => 16 * (WINDOW - windowToGrant())
  t.equal(promised.promise(WINDOW).filter(port => port > 0).length, 4)
  t.equal(shrunkBy(), 4 * WINDOW)
  t.equal(promised.dequeue().window, WINDOW)
  t.equal(shrunkBy(), 3 * WINDOW)
  promised.clear()
  t.equal(shrunkBy(), 0)
  t.equal(promised.dequeue().window, 0)
})
