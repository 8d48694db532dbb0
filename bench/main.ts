/** `fastsockets bench` and `npm run bench`. See README.md. */
import { randomInt } from 'node:crypto'
import { Command, InvalidArgumentError, Option } from 'commander'
import { FAILURE, OK } from '../fastsockets/cli/exit-codes.ts'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import { CONTESTANTS, contestantsOf } from './contestants.ts'
import { missingPackage } from './missing-package.ts'
import { prepareOutputs } from './outputs.ts'
import { loadPictures } from './pictures.ts'
import { reportTables } from './report-table.ts'
import type { Report } from './result.ts'
import { runCommand } from './run-command.ts'
import { runSuites } from './run-suites.ts'
import { QUICK_SECONDS, type Suite } from './suite.ts'
import { SUITES } from './suites.ts'
import { targetTable } from './targets.ts'

const ROUNDS = 5
const QUICK_ROUNDS = 1
const ROUNDS_MAX = 1000
const SEED_MAX = 0xffff_ffff

interface BenchOptions {
  readonly quick?: boolean
  readonly rounds?: number
  readonly contestants?: ReadonlySet<string>
  readonly json?: boolean
  readonly svg?: string
  readonly html?: string
  readonly seed?: number
}

const EXAMPLES = `
Suites:
${SUITES.map(({ name, what }) => `  ${name.padEnd(15)} ${what}`).join('\n')}

Contestants:
${CONTESTANTS.map(({ name, what }) => `  ${name.padEnd(18)} ${what}`).join('\n')}

Examples:
  $ fastsockets bench                                          everything; takes 40 minutes
  $ fastsockets bench pingpong stream --contestants raw,net-unix
  $ fastsockets bench --quick                                  a minute at most: does it work? Not for figures
  $ fastsockets bench --quick --rounds 1                       the same, with nothing left out on a slow machine
  $ fastsockets bench --json > report.json

The result is the ratio to net-tcp within one run; absolute times depend on the machine.
Exit codes: 0 everything was measured, 1 a contestant or suite failed, 2 wrong usage.`

function benchCommand(): Command {
  return new Command('fastsockets bench')
    .description('measure ways between two processes against plain node:net over TCP in the same run')
    .argument('[suite...]', 'what to measure; everything by default')
    .option('--quick', `few sizes, one round, ${QUICK_SECONDS} s at most: does it work?`)
    .addOption(
      new Option('--rounds <number>', `how often each contestant is measured (default: ${ROUNDS})`).argParser(
        text => wholeNumber(text, 1, ROUNDS_MAX),
      ),
    )
    .addOption(
      new Option('--contestants <names>', 'only these, comma separated, and net-tcp').argParser(
        parseContestants,
      ),
    )
    .option('--json', 'print the report as JSON, and nothing else')
    .option('--svg <directory>', 'draw the curves')
    .option('--html <file>', 'write a page with the tables, the pictures and the machine')
    .addOption(
      new Option('--seed <number>', 'decides the order of the contestants (default: chance)').argParser(
        text => wholeNumber(text, 0, SEED_MAX),
      ),
    )
    .addHelpText('after', EXAMPLES)
    .showHelpAfterError('(add --help for how to use it)')
    .action(bench)
}

async function bench(names: readonly string[], options: BenchOptions, command: Command): Promise<void> {
  const suites = names.length === 0 ? SUITES : [...new Set(names)].map(name => suiteOf(name, command))
  refuseUnknown(suites, command, options.contestants)
  const drawn = options.svg !== undefined || options.html !== undefined
  const packages = optionalPackages(suites, options.contestants)
  if (drawn) packages.add('echarts')
  const missing = await missingPackage(...packages)
  if (drawn && (await missingPackage('echarts')) !== undefined)
    throw new Error(`no pictures can be drawn: ${missing}`)
  if (missing !== undefined) process.stderr.write(`some rows will be left out: ${missing}\n`)
  prepareOutputs(options)
  const isQuick = options.quick ?? false
  const { report, failures } = await runSuites(suites, {
    rounds: options.rounds ?? (isQuick ? QUICK_ROUNDS : ROUNDS),
    isQuick,
    seed: options.seed ?? randomInt(SEED_MAX),
    command: ['fastsockets bench', ...process.argv.slice(2)].join(' '),
    ...(options.contestants && { contestants: options.contestants }),
    // An explicit number of rounds is never cut short.
    ...(isQuick && options.rounds === undefined && { secondsMax: QUICK_SECONDS }),
  })
  if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`)
  else process.stdout.write(`${reportTables(report)}\n\n${verdicts(report)}\n`)
  for (const failure of failures) process.stderr.write(`failed: ${failure}\n`)
  process.exitCode = failures.length === 0 ? OK : FAILURE
  await draw(report, options)
}

function optionalPackages(suites: readonly Suite[], wanted?: ReadonlySet<string>): Set<string> {
  const names = new Set(suites.flatMap(contestantsOf).filter(name => wanted?.has(name) ?? true))
  const contestants = CONTESTANTS.filter(({ name }) => names.has(name))
  return new Set([...suites, ...contestants].flatMap(({ packages = [] }) => packages))
}

/** A quick run has too few rounds for a verdict. */
function verdicts(report: Report): string {
  if (report.options.isQuick) return 'a quick run: it shows that everything works; its figures mean nothing'
  return `targets\n${targetTable(report)}`
}

async function draw(report: Report, { svg, html }: BenchOptions): Promise<void> {
  if (svg === undefined && html === undefined) return
  const pictures = await loadPictures()
  if (svg !== undefined) await pictures.writeSvg(report, svg)
  if (html !== undefined) await pictures.writeHtml(report, html)
}

function suiteOf(name: string, command: Command): Suite {
  const suite = SUITES.find(other => other.name === name)
  if (suite !== undefined) return suite
  const all = SUITES.map(other => other.name).join(', ')
  return command.error(`error: there is no suite ${name}; there are ${all}`)
}

/** A contestant that is in none of these suites is a mistake in the command. */
function refuseUnknown(suites: readonly Suite[], command: Command, wanted: Iterable<string> = []): void {
  const known = new Set(suites.flatMap(contestantsOf))
  const unknown = [...wanted].filter(name => !known.has(name))
  if (unknown.length === 0) return
  command.error(`error: no suite of these has ${unknown.join(', ')}; they have ${[...known].join(', ')}`)
}

function parseContestants(text: string): ReadonlySet<string> {
  const known = new Set(SUITES.flatMap(contestantsOf))
  const names = text.split(',')
  const unknown = names.filter(name => !known.has(name))
  if (unknown.length === 0) return new Set(names)
  throw new InvalidArgumentError(`There is no ${unknown.join(', ')}; there are ${[...known].join(', ')}.`)
}

function wholeNumber(text: string, least: number, most: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= least && value <= most) return value
  throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
}

// The reader of our output may end first (`fastsockets bench | head`).
for (const output of [process.stdout, process.stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
}

exitOnInterrupt()
await runCommand(benchCommand())
