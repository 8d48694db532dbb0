/**
 * Makes docs/performance.md from a report: conclusion, figures, cases where relinking does not help, the papers'
 * figures.
 */
import { ABLATION_MEANING, ABLATION_SUITE, ablationTable } from '../ablation-table.ts'
import { conclusion } from '../conclusion.ts'
import { levelText } from '../interval.ts'
import { busyText } from '../machine.ts'
import type { Picture } from '../pictures/picture.ts'
import { headingOf } from '../pictures/titles.ts'
import { quantity } from '../quantity.ts'
import { parametersText, roundsOf } from '../report-table.ts'
import type { Report, Result } from '../result.ts'
import { BASELINE } from '../rounds.ts'
import { targetRows } from '../targets.ts'
import { code, table, text } from './markdown.ts'
import { papersPart } from './papers-part.ts'
import { intervalCell, measurementCell, timesAsFastCell } from './result-cells.ts'
import { worsePart } from './worse-part.ts'

const RELINKED = 'net-relinked'

const MEANING = `## What the figures mean

- \`net-tcp\` is a plain Node program over TCP on the loopback interface. \`net-relinked\` is the same program with
  \`--import fastsockets/register\` on both sides, \`net-half-relinked\` on the client only, so that it stays on TCP.
  \`fastsockets bench --help\` lists the others.
- Each contestant runs in new processes in each round, after a warm-up, in an order that changes. Only the suites about cold
  programs have no warm-up. A figure is the median of the rounds; percentiles are of all samples together.
- **A ratio is the result**: the median over the rounds of the two values of one round. The interval beside it contains the true
  median with the probability at its head; fewer than five rounds have none. Absolute times depend on the machine and the hour.
- "Times as fast" above 1 means that the relinked program is faster. Of times it is the inverse of the ratio.
- Rates of streams are by the receiver's clock. 1 GB is 10^9 bytes, 1 KiB is 1024.
- In the pictures the relinked program is orange and plain TCP is grey. What is shaded, and thin lines at the ends of bars, are the
  least and the greatest of the rounds.
`

/** `others`: reports of the same bench, or parts of it, on other Nodes. */
export function performanceDocument(
  report: Report,
  pictures: readonly Picture[],
  others: readonly Report[],
): string {
  return [
    '# Performance',
    conclusion(report),
    warnings(report),
    'This page is made from a report of `fastsockets bench --json` by `npm run bench:document -- REPORT.json`; do not edit it.',
    runPart(report),
    MEANING,
    comparison(report),
    targetsPart(report),
    nodesPart(report, others),
    ...picturesPart(report, pictures),
    worsePart(report),
    papersPart(report),
    skippedPart(report),
    '## Measure yourself\n\nHow to measure, and how to see where the time goes: [guide/performance.md](guide/performance.md).',
  ]
    .filter(part => part !== '')
    .map(part => part.trim())
    .join('\n\n')
    .concat('\n')
}

function warnings({ machine, options }: Report): string {
  return [
    ...(machine.isQuiet
      ? []
      : [`**The machine was not quiet (${busyText(machine)} before): a hint, not a result.**`]),
    ...(options.isQuick ? ['**A quick run: for the shape of this page, not for figures.**'] : []),
  ].join('\n\n')
}

function runPart({ machine, options, command, startedAt, seconds }: Report): string {
  const rows = [
    ['command', code(command)],
    ['when', `${startedAt.slice(0, 16).replace('T', ' ')} UTC, ${Math.round(seconds / 60)} min`],
    ['rounds', `${options.rounds}, seed ${options.seed}`],
    [
      'processor',
      `${text(machine.model)}, ${machine.cores} cores, ${quantity(machine.memoryBytes, 'B')} of memory`,
    ],
    ['Node, kernel', `${text(machine.node)}, ${text(machine.kernel)}`],
    ['busy', `${busyText(machine)} before, load ${machine.loadAfter.toFixed(2)} after`],
  ]
  return `## The run\n\n${table(['', ''], rows)}`
}

/** Plain and relinked results, for each measurement that has both. */
function comparison({ results }: Report): string {
  const relinked = results.filter(
    ({ contestant, ratio }) => contestant === RELINKED && ratio?.to === BASELINE,
  )
  if (relinked.length === 0) return ''
  const rows = relinked.map(result => {
    const base = results.find(other => other.contestant === BASELINE && isSame(other, result))
    return [
      measurementCell(result),
      base === undefined ? '' : quantity(base.median, base.unit),
      quantity(result.median, result.unit),
      timesAsFastCell(result),
      intervalCell(result),
    ]
  })
  const head = ['measurement', 'plain, TCP', 'relinked', 'times as fast', levelText(roundsOf(results))]
  return `## Plain and relinked\n\n${table(head, rows, 1)}`
}

/** The targets, and whether the report reaches them; nothing for a quick run. */
function targetsPart(report: Report): string {
  if (report.options.isQuick) return ''
  const rows = targetRows(report).map(({ what, promise, ratio, interval, verdict }) => {
    return [what, promise, ratio, interval, verdict === 'MISSED' ? '**missed**' : verdict]
  })
  const head = ['target', 'promise', 'ratio to TCP', levelText(roundsOf(report.results)), '']
  return `## Targets

What relinked sockets must reach, as ratios to plain TCP: of times small ones are good, of rates large ones.

${table(head, rows)}`
}

/** The same targets on other Nodes. */
function nodesPart(report: Report, others: readonly Report[]): string {
  if (others.length === 0) return ''
  const reports = [report, ...others]
  const columns = reports.map(targetRows)
  const rows = targetRows(report).map(({ what, promise }, index) => {
    const cells = columns.map(column => {
      const { ratio = '', verdict } = column[index] ?? {}
      return verdict === 'MISSED' ? `**${ratio}**` : ratio
    })
    return [what, promise, ...cells]
  })
  const runs = others.map(({ command, machine, startedAt }) => {
    const when = startedAt.slice(0, 16).replace('T', ' ')
    return `- ${text(machine.node)}: ${code(command)}, ${when} UTC, ${busyText(machine)} before`
  })
  const head = ['target', 'promise', ...reports.map(({ machine }) => text(machine.node))]
  return `## On other Nodes

Ratios to plain TCP on the same Node; what misses its target is bold, what is empty was not measured.

${table(head, rows, 2)}

The runs beside this one:

${runs.join('\n')}`
}

function picturesPart(report: Report, pictures: readonly Picture[]): string[] {
  const suites = [...new Set(report.results.map(({ suite }) => suite))]
  return suites.flatMap(suite => {
    const own = pictures.filter(({ name }) => name.startsWith(`${suite}-`))
    const tables = suite === ABLATION_SUITE ? ablationPart(report) : []
    if (own.length === 0 && tables.length === 0) return []
    const drawn = own.map(({ name, title }) => `![${title}](performance/${name}.svg)`)
    return [[`## ${headingOf(suite)}`, ...drawn, ...tables].join('\n\n')]
  })
}

function ablationPart({ results }: Report): string[] {
  const ablation = ablationTable(results)
  if (ablation === undefined) return []
  const head = ['technique', 'setting', ...ablation.columns.map(({ what, size }) => `${what} ${size}`)]
  const rows = ablation.rows.map(({ technique, setting, cells }) => [text(technique), setting, ...cells])
  return [ABLATION_MEANING, table(head, rows, 2)]
}

function skippedPart({ skipped }: Report): string {
  if (skipped.length === 0) return ''
  const byReason = new Map<string, string[]>()
  for (const { suite, contestant, reason } of skipped) {
    const key = `${suite}: ${reason.split('\n')[0] ?? ''}`
    byReason.set(key, [...(byReason.get(key) ?? []), contestant])
  }
  const lines = [...byReason].map(
    ([reason, contestants]) => `- ${text(reason)} (${text(contestants.join(', '))})`,
  )
  return `## Not measured\n\n${lines.join('\n')}`
}

function isSame(a: Result, b: Result): boolean {
  return (
    a.suite === b.suite &&
    a.metric === b.metric &&
    parametersText(a.parameters) === parametersText(b.parameters)
  )
}
