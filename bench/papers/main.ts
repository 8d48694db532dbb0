/**
 * `npm run bench:papers`: the numbers of the papers beside ours. Simulated hardware in absolute numbers, from the same
 * virtual time everywhere; real drivers as ratios to TCP, from a report of `npm run bench`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import Table from 'cli-table3'
import { Command } from 'commander'
import { readReport } from '../read-report.ts'
import { runCommand } from '../run-command.ts'
import { cellsOf, sumOf, withTables } from './document.ts'
import { FITS } from './machines.ts'
import { type PapersReport, reportPapers } from './report.ts'

const CHECKOUT = new URL('../../../', import.meta.url)
const BASELINE = fileURLToPath(new URL('bench/baseline.json', CHECKOUT))
const PAGE = new URL('docs/papers.md', CHECKOUT)

/** Without colours. */
const STYLE = { head: [], border: [], compact: true }

interface Options {
  readonly json?: boolean
  readonly write?: boolean
  readonly report: string
}

const command = new Command('bench:papers')
  .description("the papers' tables and figures beside ours")
  .option('--json', 'print JSON')
  .option('--write', 'write the tables of docs/papers.md')
  .option('--report <file>', 'ratios of real drivers from this report', BASELINE)
  .action(({ json, write, report: file }: Options) => {
    const report = reportPapers(readReport(file))
    if (write) return writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), report))
    process.stdout.write(
      json ? `${JSON.stringify({ ...report, fits: FITS }, undefined, 2)}\n` : describe(report),
    )
  })

function describe(report: PapersReport): string {
  const { lines, ratios } = report
  const simulated = new Table({
    head: ['paper', 'what', 'section', 'paper', 'ours', 'difference', 'through'],
    style: STYLE,
  })
  for (const line of lines) simulated.push([line.paper, ...cellsOf(line)])
  const real = new Table({
    head: ['paper', 'what', 'times as fast as TCP', 'here, relinked to TCP', 'where'],
    style: STYLE,
  })
  for (const { paper, what, theirs, here, source } of ratios) real.push([paper, what, theirs, here, source])
  const fits = FITS.map(({ parameter, row }) => `  ${parameter}: ${row}`)
  return [
    'Simulated hardware, in virtual time',
    simulated,
    sumOf(report),
    'Fitted:',
    ...fits,
    '',
    'Real drivers, as ratios to TCP of the same machine',
    real,
    '',
  ].join('\n')
}

await runCommand(command)
