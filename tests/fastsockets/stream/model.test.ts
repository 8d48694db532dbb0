/**
 * Streams against a model of TCP's semantics, in random steps: writes, of which large ones are offered (ZCopy), reads, pauses,
 * ends, closes, resets, losses of the channel. A failure prints the seed and the last steps.
 */
import t from 'tap'
import { type Random, seededRandom } from '../../support/random.ts'
import { check, openStreamPair, type Side } from './stream-pair.ts'

const STEPS = 100_000
/** Steps of one pair, at most. */
const PAIR_STEPS = 400
/** Turns in which a pair that nothing disturbs must come to rest. */
const SETTLE_TURNS = 5000
const SHOWN_STEPS = 40

type Step = readonly [weight: number, name: string, run: (side: Side, random: Random) => void]

const STEP_KINDS: readonly Step[] = [
  [30, 'write few', (side, random) => side.write(random.within(1, 200))],
  [6, 'write many', (side, random) => side.write(random.within(1, 200_000))],
  [40, 'arrive', (side, random) => side.arrive(random.within(1, 5))],
  [40, 'turn', side => side.turn()],
  [10, 'read', side => side.setReading(true)],
  [6, 'pause', side => side.setReading(false)],
  [2, 'budget', (side, random) => side.setOverBudget(random.chance(0.3))],
  [1, 'end', side => side.shutDown()],
  [0.3, 'close', side => side.close(false)],
  [0.1, 'reset', side => side.close(true)],
]
const WEIGHTS = STEP_KINDS.reduce((sum, [weight]) => sum + weight, 0)
const LOSS_CHANCE = 0.0005

function pickStep(random: Random): Step {
  let at = (random.within(0, 1_000_000) / 1_000_000) * WEIGHTS
  for (const kind of STEP_KINDS) {
    at -= kind[0]
    if (at <= 0) return kind
  }
  return STEP_KINDS[0] as Step
}

/** Both programs read all there is. */
function settle(sides: readonly Side[]): void {
  for (let turns = 0; turns < SETTLE_TURNS; turns++) {
    for (const side of sides) {
      if (!side.isReading) side.setReading(true)
      side.arrive(Number.POSITIVE_INFINITY)
      side.turn()
    }
    if (sides.every(side => side.isIdle && side.isReading)) return
  }
  throw new Error('no rest: something is sent or delivered for ever')
}

/** What must hold at rest, while nothing was reset or lost. */
function checkRest(side: Side): void {
  const { peer } = side
  if (side.isLost || side.hasClosed) return
  if (peer.hasClosed)
    return check(side.ended !== undefined, 'no end, and no error, after the peer has closed')
  check(side.read === peer.wrote, `${side.read} bytes read of ${peer.wrote}`)
  check(!side.isWaiting, 'a write waits for ever')
  check((side.ended === 'end') === peer.hasShutDown, `an end: ${side.ended}`)
}

function lose(sides: readonly [Side, Side], random: Random): void {
  const cause = random.chance(0.5) ? new Error('the peer broke the protocol') : undefined
  for (const side of sides) side.lose(random.within(0, 10), cause)
}

/** Runs one pair from its connection to its end; returns how many steps that took, and how many bytes were fetched. */
function runPair(random: Random, steps: string[]): [steps: number, fetched: number] {
  const sides = openStreamPair(random)
  const count = random.within(1, PAIR_STEPS)
  for (let i = 0; i < count; i++) {
    if (random.chance(LOSS_CHANCE)) {
      steps.push('lose')
      lose(sides, random)
      break
    }
    const side = sides[random.within(0, 1)] as Side
    const [, name, run] = pickStep(random)
    steps.push(`${side === sides[0] ? 'client' : 'server'} ${name}`)
    run(side, random)
  }
  steps.push('settle')
  settle(sides)
  for (const side of sides) checkRest(side)
  steps.push('close both')
  for (const side of sides) side.close(false)
  settle(sides)
  for (const side of sides) {
    check(side.isForgotten && side.stream.state === 'closed', `a closed stream stays ${side.stream.state}`)
    check(side.kept === 0, `${side.kept} bytes stay on account of a closed stream`)
    check(side.registered.size === 0, 'memory of a closed stream stays on offer')
  }
  return [count, sides[0].fetched + sides[1].fetched]
}

t.test(`${STEPS} random steps are what TCP's semantics allow`, async t => {
  const random = seededRandom(t)
  let left = STEPS
  let pairs = 0
  let pairsWithFetches = 0
  while (left > 0) {
    const steps: string[] = []
    try {
      const [count, fetched] = runPair(random, steps)
      left -= count
      pairs++
      if (fetched > 0) pairsWithFetches++
    } catch (error) {
      t.comment(`pair ${pairs}: ${steps.slice(-SHOWN_STEPS).join(', ')}`)
      throw error
    }
  }
  t.ok(pairs > STEPS / PAIR_STEPS, `${pairs} pairs`)
  t.ok(pairsWithFetches > pairs / 10, `${pairsWithFetches} pairs with offers that were fetched`)
})
