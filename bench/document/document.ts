/** docs/performance.md, from a report: what was run, what it means, where it does not help, and what the papers had. */
import { ABLATION_MEANING, ABLATION_SUITE, ablationTable } from '../ablation-table.ts'
import { levelText } from '../interval.ts'
import { busyText } from '../machine.ts'
import type { Picture } from '../pictures/picture.ts'
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

- \`net-tcp\` is a plain Node program over TCP on the loopback interface; \`net-relinked\` is the same program with
  \`--import fastsockets/register\` on both sides; \`net-half-relinked\` has it on the client only, and so stays on TCP. The others are
  listed by \`fastsockets bench --help\`.
- Each contestant runs in processes of its own, once a round, after a warm-up where the suite is not about cold programs; the order of
  the contestants changes from round to round. A figure is the median of the rounds. For latencies a round's value is its median, but in \`plain-peers\` the mean;
  percentiles are of all samples together. \`c-limit\` tells means of many round trips only.
- **A ratio is the result**: of the two values of one round, the median of the rounds. The interval beside it is that in which the true
  median lies with the probability at its head, by the order of the rounds alone; with fewer than five there is none. Absolute times
  are a matter of the machine and of the hour.
- "Times as fast" is the ratio of rates, or the ratio of times turned over: above 1 the relinked program is faster.
- Rates of streams are by the receiver's clock, from the first byte to the last; other rates are of what was complete at the client.
- 1 GB is 10^9 bytes, 1 KiB is 1024.
`

export function performanceDocument(report: Report, pictures: readonly Picture[]): string {
  return [
    '# Performance',
    'Generated from a run of `fastsockets bench --json` by `npm run bench:document -- REPORT.json`; change that and not this page.',
    warnings(report),
    runPart(report),
    MEANING,
    comparison(report),
    targetsPart(report),
    ...picturesPart(report, pictures),
    worsePart(report),
    papersPart(report),
    skippedPart(report),
    '## Look inside\n\nHow to see where the time goes, and what allocates: [profiling.md](profiling.md).',
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

/** Plain and relinked, for all that both have done. */
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

/** What was promised, and whether it holds. */
function targetsPart(report: Report): string {
  const rows = targetRows(report).map(({ what, promise, ratio, interval, verdict }) => {
    return [what, promise, ratio, interval, verdict === 'MISSED' ? '**missed**' : verdict]
  })
  const head = ['target', 'promise', 'ratio to TCP', levelText(roundsOf(report.results)), '']
  return `## Targets

What sockets must reach, as ratios of relinked to plain: of times, small ones are good, of rates, large ones.

${table(head, rows)}`
}

function picturesPart(report: Report, pictures: readonly Picture[]): string[] {
  const suites = [...new Set(report.results.map(({ suite }) => suite))]
  return suites.flatMap(suite => {
    const own = pictures.filter(({ name }) => name.startsWith(`${suite}-`))
    const tables = suite === ABLATION_SUITE ? ablationPart(report) : []
    if (own.length === 0 && tables.length === 0) return []
    const drawn = own.map(({ name, title }) => `![${title}](performance/${name}.svg)`)
    return [[`## ${suite}`, ...drawn, ...tables].join('\n\n')]
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
