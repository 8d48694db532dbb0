import t from 'tap'
import { RING_SIZE_DEFAULT, RING_SIZE_MIN } from '../../../nic/verbs/frame-layout.ts'
import { RINGS_PINNED_MAX, ringSizeAfter } from '../../../nic/verbs/ring-size.ts'

const CHANNELS_MAX = 1024

t.test('the first have large rings, the many small ones, and together they stay below a limit', async t => {
  let pinned = 0
  const sizes = Array.from({ length: CHANNELS_MAX }, () => {
    const size = ringSizeAfter(pinned, RINGS_PINNED_MAX)
    pinned += 2 * size
    return size
  })
  t.ok(sizes.slice(0, 64).every(size => size === RING_SIZE_DEFAULT))
  t.ok(
    sizes.every((size, i) => i === 0 || size <= (sizes[i - 1] as number)),
    'never larger than before',
  )
  t.equal(sizes.at(-1), RING_SIZE_MIN)
  const least = 2 * RING_SIZE_MIN * CHANNELS_MAX
  t.ok(pinned <= RINGS_PINNED_MAX + least, `${pinned} bytes`)
})

t.test('memory that is given back makes rings large again', async t => {
  t.equal(ringSizeAfter(RINGS_PINNED_MAX, RINGS_PINNED_MAX), RING_SIZE_MIN)
  t.equal(ringSizeAfter(2 * RINGS_PINNED_MAX, RINGS_PINNED_MAX), RING_SIZE_MIN)
  t.equal(ringSizeAfter(0, RINGS_PINNED_MAX), RING_SIZE_DEFAULT)
})

t.test('under a low limit all rings together stay below it as long as they can', async t => {
  const pinnedMax = 4 * 1024 * 1024
  let pinned = 0
  let count = 0
  while (pinned + 2 * ringSizeAfter(pinned, pinnedMax) <= pinnedMax) {
    pinned += 2 * ringSizeAfter(pinned, pinnedMax)
    count++
  }
  t.equal(count, 32, 'so many peers are fast, and not two')
  t.equal(ringSizeAfter(0, 0), RING_SIZE_MIN)
})
