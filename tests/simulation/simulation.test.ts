import t from 'tap'
import { PLANTS } from './plants.ts'
import { type Outcome, simulate } from './world.ts'

const SEEDS = 200
const STEPS = 300
/** One of so many seeds runs twice here; `npm run simulate` runs each twice. */
const REPEATED = 8
/** Seeds within which each planted bug must be found. */
const PLANT_SEEDS = 60

/** Seeds that have found a fault of the product, and what it was. */
const FOUND: readonly (readonly [seed: number, steps: number, fault: string])[] = []

await t.test(`${SEEDS} seeds break no rule, and repeat exactly`, async t => {
  const failures: string[] = []
  const sum: Record<string, number> = {}
  for (let seed = 1; seed <= SEEDS; seed++) {
    const one = await simulate({ seed, steps: STEPS })
    const other = seed % REPEATED === 0 ? await simulate({ seed, steps: STEPS }) : one
    if (one.failure !== undefined) failures.push(`seed ${seed}: ${one.failure}`)
    else if (JSON.stringify(one) !== JSON.stringify(other)) failures.push(`seed ${seed} does not repeat`)
    for (const [name, count] of Object.entries(one.faults)) sum[name] = (sum[name] ?? 0) + count
  }
  t.strictSame(failures, [])
  const { overruns, ...fired } = sum
  t.equal(overruns, 0, 'no sender exceeds the receive descriptors')
  for (const [name, count] of Object.entries(fired)) t.ok(count > 0, `${name}: ${count} times`)
})

await t.test('seeds differ', async t => {
  const traces = new Set<number>()
  for (let seed = 1; seed <= 10; seed++) traces.add((await simulate({ seed, steps: 50 })).trace)
  t.equal(traces.size, 10)
})

for (const [name, plant] of Object.entries(PLANTS)) {
  await t.test(`the planted bug ${name} is found within ${PLANT_SEEDS} seeds`, async t => {
    const remove = plant()
    let outcome: Outcome | undefined
    try {
      for (let seed = 1; seed <= PLANT_SEEDS && outcome?.failure === undefined; seed++)
        outcome = await simulate({ seed, steps: STEPS })
    } finally {
      remove()
    }
    t.comment(`seed ${outcome?.seed}: ${outcome?.failure}`)
    t.not(outcome?.failure, undefined)
  })
}

for (const [seed, steps, fault] of FOUND) {
  await t.test(`seed ${seed}: ${fault}`, async t => {
    t.equal((await simulate({ seed, steps })).failure, undefined)
  })
}
