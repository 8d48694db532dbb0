/**
 * `npm run simulate`: whole systems of each kind, each seed twice. The first seed that breaks a rule, or does not repeat, ends
 * the program with the line that runs it again, made as short as possible.
 */
import { execFileSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import { HARDWARE } from '../../nic/simulated/index.ts'
import { shrink } from './shrink.ts'
import { KINDS, type Kind, simulate } from './simulate.ts'
import { FAULT_KINDS, type FaultKind, isMasked, type Outcome, type SimulationOptions } from './world.ts'

const STEPS_DEFAULT = 300
const SEEDS_DEFAULT = 200
/** Of all kinds together. */
const SEEDS_NIGHTLY = 10_000
/** In so many seeds of a kind each kind of fault must have fired. */
const FIRED_SEEDS = 100

interface Options {
  readonly kind: readonly Kind[]
  readonly seed?: number
  readonly seeds?: number
  readonly steps: number
  readonly hardware?: string
  readonly without: readonly FaultKind[]
  readonly nightly?: true
}

const allKinds = Object.keys(KINDS) as Kind[]
const {
  kind: kinds,
  seed,
  seeds,
  steps,
  hardware,
  without,
  nightly,
} = new Command('npm run simulate --')
  .description('simulates whole systems in virtual time, each seed twice')
  .option('--kind <kinds>', `some of ${allKinds.join(', ')}`, listOf('kind of system', allKinds), allKinds)
  .option('--seed <n>', 'the first seed: by default 1', numberFrom(0))
  .option('--seeds <count>', `of each kind: by default ${SEEDS_DEFAULT}, or 1 with --seed`, numberFrom(1))
  .option('--steps <m>', 'actions of a system', numberFrom(1), STEPS_DEFAULT)
  .option(
    '--hardware <name>',
    `one of ${[...HARDWARE.keys()].join(', ')}: by default as the seed says`,
    oneHardware,
  )
  .option('--without <faults>', `some of ${FAULT_KINDS.join(', ')}`, listOf('kind of fault', FAULT_KINDS), [])
  .option('--nightly', `${SEEDS_NIGHTLY} seeds from a random one on, shared by the kinds`)
  .showHelpAfterError()
  .allowExcessArguments(false)
  .parse()
  .opts<Options>()

const count =
  seeds ?? (nightly ? Math.ceil(SEEDS_NIGHTLY / kinds.length) : seed === undefined ? SEEDS_DEFAULT : 1)
const first = seed ?? (nightly ? randomInt(2 ** 31) : 1)

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
  // Messages are those of the programs (calls, connections); frames are what the network has carried for them.
  const [messages, frames] = ['messages', 'frames'].map(name =>
    Math.round((2 * (sum.get(name) as number)) / seconds),
  )
  console.log(
    `${kind}: ${count} seeds, each twice, in ${seconds.toFixed(1)} s: ${messages} messages and ${frames} frames a second`,
  )
  console.log([...sum].map(([name, value]) => `${name} ${Math.round(value)}`).join(', '))
  const silent = [...sum]
    .filter(([name, value]) => value === 0 && name !== 'overruns' && !isMasked(kind, name))
    .map(([name]) => name)
  if (silent.length > 0 && count >= FIRED_SEEDS && without.length === 0 && hardware === undefined) {
    console.error(`${kind}: ${silent.join(', ')} never happened`)
    process.exitCode = 1
  }
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

function listOf<T extends string>(what: string, known: readonly T[]): (text: string) => readonly T[] {
  return text =>
    text.split(',').map(name => {
      const one = known.find(other => other === name)
      if (one === undefined) throw new InvalidArgumentError(`There is no ${what} ${name}.`)
      return one
    })
}

function oneHardware(name: string): string {
  if (!HARDWARE.has(name)) throw new InvalidArgumentError(`There is no hardware ${name}.`)
  return name
}

function numberFrom(min: number): (text: string) => number {
  return text => {
    const number = Number(text)
    if (/^\d+$/.test(text) && Number.isSafeInteger(number) && number >= min) return number
    throw new InvalidArgumentError(`It must be a whole number from ${min} on.`)
  }
}

function whyDifferent(one: Outcome, other: Outcome): string | undefined {
  const [a, b] = [JSON.stringify(one), JSON.stringify(other)]
  return a === b ? undefined : `the second run was another:\n${a}\n${b}`
}

function commit(): string {
  try {
    return execFileSync('git', ['describe', '--always', '--dirty', '--exclude=*'], {
      encoding: 'utf8',
    }).trim()
  } catch {
    return 'an unknown commit'
  }
}
