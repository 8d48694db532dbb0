import t from 'tap'
import { ReplayWindow } from '../../../nic/ethernet/replay-window.ts'
import { seededRandom } from '../../support/random.ts'

t.test('each nonce counts once, in any order within the window', async t => {
  const window = new ReplayWindow()
  const random = seededRandom(t)
  const seen = new Set<number>()
  let highest = 0
  let wrong = 0
  for (let i = 0; i < 100_000; i++) {
    const step = random.chance(0.001) ? random.within(1, 5000) : random.within(-1200, 30)
    const nonce = Math.max(1, highest + step)
    const isFresh = nonce > highest - 1024 && !seen.has(nonce)
    if (window.accept(nonce) !== isFresh) wrong++
    if (isFresh) seen.add(nonce)
    highest = Math.max(highest, nonce)
  }
  t.equal(wrong, 0)
})

t.test('nonces beyond 2^32 are whole numbers, too', async t => {
  const window = new ReplayWindow()
  const far = 2 ** 52
  t.ok(window.accept(far))
  t.ok(window.accept(far - 1))
  t.notOk(window.accept(far))
  t.notOk(window.accept(far - 1))
  t.notOk(window.accept(far - 1024))
  t.ok(window.accept(far + 1))
  t.notOk(window.accept(1))
})
