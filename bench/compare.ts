/**
 * `npm run bench:compare -- BASE.json NEW.json`: finds results that are worse than those of a base report.
 *
 * Exit codes: 0 no, 1 something has lost more than 10 %, 2 the reports cannot be read or compared.
 */
import Table from 'cli-table3'
import { FAILURE, OK, USAGE_ERROR } from '../fastsockets/cli/exit-codes.ts'
import { FaultRandom } from '../nic/fault/fault-random.ts'
import { type Compared, type Comparison, compareReports, ROUNDS_MIN, TOLERANCE } from './comparison.ts'
import { readReport } from './read-report.ts'
import { parametersText } from './report-table.ts'
import { FAILED, type Report } from './result.ts'

/** The same reports, the same answer. */
const SEED = 1

function main(files: readonly string[]): number {
  const [baseFile, nextFile] = files
  if (baseFile === undefined || nextFile === undefined || files.length !== 2) {
    throw new Error('usage: npm run bench:compare -- BASE.json NEW.json')
  }
  const base = readComparable(baseFile)
  const next = readComparable(nextFile)
  const generator = new FaultRandom(SEED)
  const comparison = compareReports(base, next, () => generator.word() / 2 ** 32)
  if (comparison.compared.length === 0) throw new Error('the two reports have no result in common')
  process.stdout.write(`${describe(comparison)}\n`)
  const isBroken = comparison.missing.some(({ suite, contestant, ratio }) =>
    next.skipped.some(
      one =>
        one.suite === suite &&
        (one.contestant === contestant || one.contestant === ratio?.to) &&
        one.reason.startsWith(FAILED),
    ),
  )
  return isBroken || comparison.compared.some(({ verdict }) => verdict === 'lost') ? FAILURE : OK
}

function readComparable(file: string): Report {
  const report = readReport(file)
  const { rounds, isQuick } = report.options
  if (isQuick) throw new Error(`${file} was made with --quick: its figures mean nothing`)
  if (rounds >= ROUNDS_MIN) return report
  throw new Error(`${file} has ${rounds} rounds; noise can be told from change with ${ROUNDS_MIN} or more`)
}

function describe({ compared, missing }: Comparison): string {
  const changed = compared.filter(({ verdict }) => verdict === 'lost' || verdict === 'gained')
  const unclear = compared.filter(({ verdict }) => verdict === 'unclear')
  const lines = [
    `${compared.length} ratios to TCP compared, ${changed.length} changed by more than ${TOLERANCE * 100} %, ` +
      `${unclear.length} cannot be told: their rounds scatter so much that a loss of half would not show`,
  ]
  if (unclear.length > 0) lines.push(`  ${countsOf(unclear)}`)
  const shown = [...changed, ...unclear.filter(one => Math.abs(changeOf(one)) > TOLERANCE)]
  if (shown.length > 0) lines.push(tableOf(shown))
  if (missing.length > 0) {
    const names = new Set(missing.map(({ suite, contestant }) => `${suite} of ${contestant}`))
    lines.push(`the new report lacks ${missing.length}: ${[...names].join(', ')}`)
  }
  return lines.join('\n')
}

/** 0.1 is 10 % more. */
function changeOf({ before, after }: Compared): number {
  return after / before - 1
}

/** How many there are of each suite. */
function countsOf(compared: readonly Compared[]): string {
  const counts = new Map<string, number>()
  for (const { result } of compared) counts.set(result.suite, (counts.get(result.suite) ?? 0) + 1)
  return [...counts].map(([suite, count]) => `${suite}: ${count}`).join(', ')
}

function tableOf(shown: readonly Compared[]): string {
  const table = new Table({
    head: ['suite', 'contestant', 'parameters', 'metric', 'before', 'after', ''],
    style: { head: [], border: [], compact: true },
  })
  for (const one of shown) {
    const { result, before, after, verdict } = one
    const percent = (100 * Math.abs(changeOf(one))).toFixed(0)
    table.push([
      result.suite,
      result.contestant,
      parametersText(result.parameters),
      result.metric,
      before.toPrecision(3),
      after.toPrecision(3),
      verdict === 'unclear' ? 'cannot be told' : `${percent} % ${verdict === 'lost' ? 'WORSE' : 'better'}`,
    ])
  }
  return table.toString()
}

try {
  process.exitCode = main(process.argv.slice(2))
} catch (error) {
  process.stderr.write(`bench:compare: ${(error as Error).message}\n`)
  process.exitCode = USAGE_ERROR
}
