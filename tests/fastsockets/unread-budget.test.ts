/** However many sockets a peer opens and fills, what lies unread stays within the budget. */
import t from 'tap'
import { SHRUNK_WINDOW, WINDOW } from '../../fastsockets/stream/stream-layout.ts'
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
