/**
 * `npm run test:node -- DIRECTORY [GLOB…]`: runs tests of a Node source tree plain and relinked, and lists what passes
 * plain and fails relinked, always or now and then. Exit code: 0 nothing that kernel-tests.ts gives no reason for, or
 * that is in there for none; 1 something; 2 wrong use.
 */
import { parseArgs } from 'node:util'
import { type Comparison, compareAll } from './compare.ts'
import { KERNEL_TESTS } from './kernel-tests.ts'
import { DEFAULT_GLOB, findTests } from './test-files.ts'

const USAGE = `usage: npm run test:node -- DIRECTORY [GLOB…] [--json] [--verbose] [--jobs N] [--timeout SECONDS]

DIRECTORY  a Node source tree, or its folder test; a GLOB is relative to the latter.
           Without one: ${DEFAULT_GLOB}
--json     the summary as JSON
--verbose  what failing tests print, too
--jobs     tests at once, 2 unless told; those of the folder sequential run one by one
--timeout  for each run, 60 unless told
`

interface Summary {
  readonly same: number
  /** Of those, how many had a fast connection: relinking was put to the test. */
  readonly sameAndFast: number
  readonly useless: readonly string[]
  readonly broken: readonly string[]
  readonly unsteady: readonly string[]
  /** Broken or unsteady, as kernel-tests.ts says. */
  readonly expected: readonly string[]
  /** Listed in kernel-tests.ts, and pass. */
  readonly unexpected: readonly string[]
}

function summarize(comparisons: readonly Comparison[]): Summary {
  const names = (test: (comparison: Comparison) => boolean): string[] =>
    comparisons.filter(test).map(({ name }) => name)
  const isKnown = ({ name }: Comparison): boolean => name in KERNEL_TESTS
  const isFast = ({ relinked }: Comparison): boolean => relinked.some(run => run.fastCount > 0)
  return {
    same: names(({ verdict }) => verdict === 'same').length,
    sameAndFast: names(it => it.verdict === 'same' && isFast(it)).length,
    useless: names(({ verdict }) => verdict === 'useless'),
    broken: names(it => it.verdict === 'broken' && !isKnown(it)),
    unsteady: names(it => it.verdict === 'unsteady' && !isKnown(it)),
    expected: names(it => (it.verdict === 'broken' || it.verdict === 'unsteady') && isKnown(it)),
    unexpected: names(it => it.verdict === 'same' && isKnown(it)),
  }
}

function describe(summary: Summary): string {
  const { same, sameAndFast, useless, broken, unsteady, expected, unexpected } = summary
  const list = (title: string, names: readonly string[]): string =>
    [`${title}: ${names.length}`, ...names.map(name => `  ${name}`)].join('\n')
  return [
    `pass plain and relinked: ${same}, ${sameAndFast} of them with fast connections`,
    `fail plain, or are skipped: ${useless.length}`,
    `pass plain, fail relinked, and are known to: ${expected.length}`,
    list('pass plain, fail relinked', broken),
    list('pass plain, fail relinked now and then', unsteady),
    list('are known to fail relinked, and pass', unexpected),
  ].join('\n')
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean' },
      verbose: { type: 'boolean' },
      jobs: { type: 'string', default: '2' },
      timeout: { type: 'string', default: '60' },
    },
  })
  const [directory, ...globs] = positionals
  const jobCount = Number(values.jobs)
  const timeoutMs = Number(values.timeout) * 1000
  if (directory === undefined || !(jobCount >= 1) || !(timeoutMs > 0))
    throw new Error('a word is missing or wrong')
  const files = findTests(directory, globs.length > 0 ? globs : [DEFAULT_GLOB])
  if (files.length === 0) throw new Error(`no such tests in ${directory}`)
  let count = 0
  const comparisons = await compareAll(files, {
    jobCount,
    timeoutMs,
    onCompared: ({ name, verdict, relinked }) => {
      count++
      if (verdict === 'same') return
      process.stderr.write(`[${count}/${files.length}] ${verdict} ${name}\n`)
      const output = relinked.find(run => run.outcome !== 'passed')?.output
      if (values.verbose && output) process.stderr.write(`${output.replace(/^/gm, '    ')}\n`)
    },
  })
  const summary = summarize(comparisons)
  process.stdout.write(values.json ? `${JSON.stringify(summary, null, 2)}\n` : `${describe(summary)}\n`)
  const { broken, unsteady, unexpected } = summary
  return broken.length + unsteady.length + unexpected.length > 0 ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n${USAGE}`)
  process.exitCode = 2
}
