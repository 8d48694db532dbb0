/** How much one turn of the event loop handles. */
import t from 'tap'
import { CHANNEL_MESSAGES_MAX, TurnBudget } from '../../../am/progress/turn-budget.ts'

const LARGE = 128 * 1024

function spend(budget: TurnBudget, messages: number, bytes: number): void {
  budget.messagesLeft -= messages
  budget.bytesLeft -= bytes
}

/** Spends what the budget gives, on channels that have any number of messages; returns how many. */
function spendAll(budget: TurnBudget, bytes: number): number {
  budget.begin(performance.now())
  let count = 0
  for (;;) {
    const limit = budget.nextLimit(CHANNEL_MESSAGES_MAX)
    if (limit === 0) break
    spend(budget, limit, limit * bytes)
    count += limit
  }
  budget.end()
  return count
}

function busyFor(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

t.test('a turn ends with its bytes, however few messages they are', async t => {
  const bytes = spendAll(new TurnBudget(), LARGE) * LARGE
  t.ok(bytes >= 2 << 20 && bytes <= 4 << 20, `${bytes} bytes`)
})

t.test('quick turns handle more and more messages, up to a limit', async t => {
  const budget = new TurnBudget()
  const first = spendAll(budget, 8)
  t.ok(first <= 64)
  let most = first
  for (let turn = 0; turn < 1000; turn++) most = Math.max(most, spendAll(budget, 8))
  t.ok(most > first, `${most} in the end`)
  t.ok(most <= 2048)
})

t.test('a turn that took long makes the next ones shorter, down to a few messages', async t => {
  const budget = new TurnBudget()
  let last = 0
  for (let turn = 0; turn < 10; turn++) {
    budget.begin(performance.now())
    last = budget.nextLimit(CHANNEL_MESSAGES_MAX)
    for (let limit = last; limit > 0; limit = budget.nextLimit(CHANNEL_MESSAGES_MAX)) {
      spend(budget, limit, limit)
      busyFor(4)
    }
    budget.end()
  }
  t.equal(last, 16)
  budget.begin(performance.now())
  spend(budget, 16, 16)
  t.equal(budget.nextLimit(256), 0)
})

t.test('after a while a turn takes in nothing more', async t => {
  const budget = new TurnBudget()
  budget.begin(performance.now())
  spend(budget, budget.nextLimit(256), 1)
  t.ok(budget.nextLimit(256) > 0)
  busyFor(2)
  t.equal(budget.nextLimit(256), 0)
})
