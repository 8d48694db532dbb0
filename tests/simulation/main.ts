/**
 * npm run simulate -- [--seed N] [--seeds COUNT] [--steps M] [--hardware NAME] [--nightly]
 *
 * Simulates whole systems, each seed twice. The first seed that breaks a rule, or does not repeat, ends the program with
 * the line that runs it again.
 */
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { HARDWARE } from '../../nic/simulated/index.ts'
import { type Outcome, simulate } from './world.ts'

const STEPS_DEFAULT = 300
const SEEDS_NIGHTLY = 10_000

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    steps: { type: 'string' },
    hardware: { type: 'string' },
    nightly: { type: 'boolean' },
  },
})
const steps = Number(values.steps ?? STEPS_DEFAULT)
const { hardware } = values
if (hardware !== undefined && !HARDWARE.has(hardware))
  throw new Error(`no hardware ${hardware}; there are ${[...HARDWARE.keys()].join(', ')}`)
const count = values.nightly ? SEEDS_NIGHTLY : Number(values.seeds ?? (values.seed === undefined ? 200 : 1))
const first = values.nightly && values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed ?? 1)

const begunMs = performance.now()
const sum = new Map<string, number>()
for (let seed = first; seed < first + count; seed++) {
  const options = { seed, steps, ...(hardware !== undefined && { hardware }) }
  const outcome = await simulate(options)
  const again = await simulate(options)
  const failure = outcome.failure ?? whyDifferent(outcome, again)
  if (failure !== undefined) {
    console.error(`seed ${seed} (${outcome.hardware}): ${failure}`)
    console.error(
      `again, at ${commit()}: npm run simulate -- --seed ${seed} --steps ${steps}${hardware ? ` --hardware ${hardware}` : ''}`,
    )
    process.exit(1)
  }
  const { messages, returned, frames, events, virtualMs, faults } = outcome
  for (const [name, value] of Object.entries({ messages, returned, frames, events, virtualMs, ...faults }))
    sum.set(name, (sum.get(name) ?? 0) + value)
  if (count === 1) console.log(`trace ${outcome.trace.toString(16)} over ${outcome.hardware}`)
}
const seconds = (performance.now() - begunMs) / 1000
const rate = Math.round((2 * (sum.get('messages') as number)) / seconds)
console.log(`${count} seeds, each twice, in ${seconds.toFixed(1)} s: ${rate} messages a second`)
console.log([...sum].map(([name, value]) => `${name} ${Math.round(value)}`).join(', '))

function whyDifferent(one: Outcome, other: Outcome): string | undefined {
  const [a, b] = [JSON.stringify(one), JSON.stringify(other)]
  return a === b ? undefined : `the second run was another:\n${a}\n${b}`
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return 'an unknown commit'
  }
}
