/**
 * npm run simulate -- [--kind KIND] [--seed N] [--seeds COUNT] [--steps M] [--hardware NAME] [--without FAULT,…] [--nightly]
 *
 * Simulates whole systems of each kind, each seed twice. The first seed that breaks a rule, or does not repeat, ends the
 * program with the line that runs it again, made as short as possible.
 */
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { HARDWARE } from '../../nic/simulated/index.ts'
import { shrink } from './shrink.ts'
import { KINDS, type Kind, simulate } from './simulate.ts'
import { FAULT_KINDS, type FaultKind, type Outcome, type SimulationOptions } from './world.ts'

const STEPS_DEFAULT = 300
const SEEDS_NIGHTLY = 10_000

const { values } = parseArgs({
  options: {
    kind: { type: 'string' },
    seed: { type: 'string' },
    seeds: { type: 'string' },
    steps: { type: 'string' },
    hardware: { type: 'string' },
    without: { type: 'string' },
    nightly: { type: 'boolean' },
  },
})
const steps = Number(values.steps ?? STEPS_DEFAULT)
const { hardware } = values
const without = (values.without?.split(',') ?? []) as FaultKind[]
const kinds = (values.kind?.split(',') ?? Object.keys(KINDS)) as Kind[]
if (hardware !== undefined) assertKnown('hardware', [hardware], [...HARDWARE.keys()])
assertKnown('kind of system', kinds, Object.keys(KINDS))
assertKnown('kind of fault', without, FAULT_KINDS)
const count = values.nightly ? SEEDS_NIGHTLY : Number(values.seeds ?? (values.seed === undefined ? 200 : 1))
const first = values.nightly && values.seed === undefined ? randomInt(2 ** 31) : Number(values.seed ?? 1)

for (const kind of kinds) {
  const begunMs = performance.now()
  const sum = new Map<string, number>()
  for (let seed = first; seed < first + count; seed++) {
    const options = { seed, steps, without, ...(hardware !== undefined && { hardware }) }
    const outcome = await simulate(kind, options)
    const again = await simulate(kind, options)
    if (outcome.failure !== undefined) await fail(kind, options, outcome)
    const difference = whyDifferent(outcome, again)
    if (difference !== undefined) stop(kind, options, outcome, difference)
    const { messages, returned, frames, events, virtualMs, faults } = outcome
    for (const [name, value] of Object.entries({ messages, returned, frames, events, virtualMs, ...faults }))
      sum.set(name, (sum.get(name) ?? 0) + value)
    if (count === 1) console.log(`${kind}: trace ${outcome.trace.toString(16)} over ${outcome.hardware}`)
  }
  const seconds = (performance.now() - begunMs) / 1000
  const rate = Math.round((2 * (sum.get('messages') as number)) / seconds)
  console.log(`${kind}: ${count} seeds, each twice, in ${seconds.toFixed(1)} s: ${rate} messages a second`)
  console.log([...sum].map(([name, value]) => `${name} ${Math.round(value)}`).join(', '))
}

async function fail(kind: Kind, options: SimulationOptions, outcome: Outcome): Promise<never> {
  console.error(`seed ${options.seed} (${kind}, ${outcome.hardware}): ${outcome.failure}`)
  const shrunk = await shrink(kind, options, outcome)
  return stop(kind, shrunk.options, shrunk.outcome, `${shrunk.outcome.failure}`)
}

function stop(kind: Kind, options: SimulationOptions, outcome: Outcome, why: string): never {
  const { seed, hardware, without = [] } = options
  console.error(`seed ${seed} (${kind}, ${outcome.hardware}): ${why}`)
  const more = [
    ...(hardware === undefined ? [] : [`--hardware ${hardware}`]),
    ...(without.length === 0 ? [] : [`--without ${without.join(',')}`]),
  ]
  const command = ['npm run simulate --', `--kind ${kind}`, `--seed ${seed}`, `--steps ${options.steps}`]
  console.error(`again, at ${commit()}: ${[...command, ...more].join(' ')}`)
  process.exit(1)
}

function assertKnown(what: string, given: readonly string[], known: readonly string[]): void {
  for (const one of given)
    if (!known.includes(one)) throw new Error(`no ${what} ${one}; there are ${known.join(', ')}`)
}

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
