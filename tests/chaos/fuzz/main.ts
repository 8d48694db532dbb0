/**
 * `npm run fuzz`: hostile inputs of every kind, a million of each. The seed is printed; the same seed says the same things, though
 * the other process or thread of a kind may be slower or faster.
 *
 *   npm run fuzz -- --inputs 20000 --kind ring-words --kind names --seed 7
 */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { KINDS } from './kinds/index.ts'
import { runKind } from './run-kind.ts'

const INPUTS_DEFAULT = 1_000_000
const USAGE_ERROR = 2

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: String(INPUTS_DEFAULT) },
    seed: { type: 'string', default: String(randomInt(2 ** 32)) },
    kind: { type: 'string', multiple: true },
    list: { type: 'boolean', default: false },
  },
})
const inputs = wholeNumber('--inputs', values.inputs)
const seed = wholeNumber('--seed', values.seed)
const unknown = (values.kind ?? []).filter(name => KINDS.every(kind => kind.name !== name))
if (unknown.length > 0) fail(`no such kind: ${unknown.join(', ')}; --list names them`)
if (values.list) for (const { name, what } of KINDS) console.log(`${name.padEnd(16)} ${what}`)
else await runAll()

async function runAll(): Promise<void> {
  console.log(`seed ${seed}, ${inputs} inputs a kind`)
  for (const kind of KINDS) {
    if (values.kind !== undefined && !values.kind.includes(kind.name)) continue
    const absence = kind.absence?.()
    if (absence !== undefined) {
      console.log(`SKIPPED ${kind.name}: ${absence}`)
      continue
    }
    const startMs = performance.now()
    const { counts, complaints, longestMs, growth } = await runKind(kind, seed, inputs)
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
    const reached = Object.entries(counts).map(([what, count]) => `${what} ${count}`)
    console.log(
      `${complaints.length === 0 ? 'ok  ' : 'FAIL'} ${kind.name.padEnd(16)} ${seconds} s, longest turn ${longestMs.toFixed(1)} ms, ${growth} bytes more`,
    )
    console.log(`     ${reached.join(', ')}`)
    for (const complaint of complaints)
      console.log(`     ${complaint} (repeat: --kind ${kind.name} --seed ${seed} --inputs ${inputs})`)
    if (complaints.length > 0) process.exitCode = 1
  }
}

function wholeNumber(flag: string, text: string): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 0 || number > 2 ** 32)
    fail(`${flag} must be a whole number, not ${text}`)
  return number
}

function fail(text: string): never {
  console.error(text)
  process.exit(USAGE_ERROR)
}
