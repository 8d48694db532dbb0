/** docs/performance.md, from a report: what was run, what it means, where it does not help, and what the papers had. */
import { ABLATION_MEANING, ABLATION_SUITE, ablationTable } from '../ablation-table.ts'
import { levelText, saysSomething } from '../interval.ts'
import { axisTitle } from '../pictures/choose-pictures.ts'
import type { Picture } from '../pictures/picture.ts'
import { quantity } from '../quantity.ts'
import { parametersText, roundsOf } from '../report-table.ts'
import type { Report, Result } from '../result.ts'
import { timesAsFast } from '../times-as-fast.ts'
import { code, table, text } from './markdown.ts'
import { papersPart } from './papers-part.ts'

const RELINKED = 'net-relinked'
const HALF_RELINKED = 'net-half-relinked'
const BASELINE = 'net-tcp'

const MEANING = `## What the figures mean

- \`net-tcp\` is a plain Node program over TCP on the loopback interface; \`net-relinked\` is the same program with
  \`--import fastsockets/register\` on both sides; \`net-half-relinked\` has it on the client only, and so stays on TCP. The others are
  listed by \`fastsockets bench --help\`.
- Each contestant runs in processes of its own, after a warm-up, once a round; the order of the contestants changes from round to
  round. A figure is the median of the rounds. For latencies a round's value is its median; percentiles are of all samples together.
- **A ratio is the result**: of the two values of one round, the median of the rounds. The interval beside it is that in which the true
  median lies with the probability at its head, by the order of the rounds alone; with fewer than five there is none. Absolute times are a matter of the machine and of the hour.
- "Times as fast" is the ratio of rates, or the ratio of times turned over: above 1 the relinked program is faster.
- Rates are by the receiver's clock, from the first byte to the last. 1 GB is 10^9 bytes, 1 KiB is 1024.
`

const NO_HELP = `Besides what the table shows:

- Transfers that wait for files gain nothing; with few cores they may lose, because both sides poll while they wait and the file
  system's threads want the same cores.
- The first seconds of a program, until V8 has compiled it. What the kernel does for TCP is warm; what we do instead is JavaScript that is
  new: some four times the function calls of a plain socket for a message, three times for a connection, and each costs 0.5 us while it is
  cold. One pair of processes passes TCP within the first second; where many share few cores it takes some seconds, since their code
  also drives each other's out of the caches. The suite \`warmup\` shows it, second by second; all other suites measure warm programs.
- New connections gain less than messages: most of what is left is Node's own, which makes, tells and takes down a \`net.Socket\` on
  each side, whatever carries the bytes.
- On a single core two programs take turns, and a round trip takes about as long as with TCP. Where there are more busy processes than
  cores, polling has to give way; the suite \`oversubscribed\` measures that.
- A peer that is not relinked gets plain TCP. What that costs is in the suite \`plain-peers\`: \`net-half-relinked\` is a relinked client of a plain server,
  \`net-relinked-server\` the other way round.
- A program whose time goes into its own work, such as a parser or a framework, gains only the part that was the kernel's: see the
  suite \`apps\`.
`

export function performanceDocument(report: Report, pictures: readonly Picture[]): string {
  return [
    '# Performance',
    'Generated from a run of `fastsockets bench --json` by `npm run bench:document -- REPORT.json`; change that and not this page.',
    warnings(report),
    runPart(report),
    MEANING,
    comparison(report),
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
      : [
          `**The machine was not quiet (load ${machine.loadBefore.toFixed(1)} before, ${machine.loadAfter.toFixed(1)} after): a hint, not a result.**`,
        ]),
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
    ['load', `${machine.loadBefore.toFixed(2)} before, ${machine.loadAfter.toFixed(2)} after`],
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
      measurement(result),
      base === undefined ? '' : quantity(base.median, base.unit),
      quantity(result.median, result.unit),
      timesAsFast(result).toPrecision(2),
      interval(result),
    ]
  })
  const head = ['measurement', 'plain, TCP', 'relinked', 'times as fast', levelText(roundsOf(results))]
  return `## Plain and relinked\n\n${table(head, rows, 1)}`
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

/** Where it is slower, and the interval leaves no doubt. */
function worsePart({ results }: Report): string {
  const worse = results.filter(result => {
    const { contestant, ratio, better, rounds } = result
    if (!saysSomething(rounds.length)) return false
    if (ratio?.to !== BASELINE || (contestant !== RELINKED && contestant !== HALF_RELINKED)) return false
    return better === 'higher' ? ratio.high < 1 : ratio.low > 1
  })
  const rows = worse.map(result => [
    measurement(result),
    result.contestant,
    timesAsFast(result).toPrecision(2),
    interval(result),
  ])
  const found =
    rows.length === 0
      ? 'In this run nothing was slower than plain TCP beyond doubt, which takes five rounds.'
      : `What was slower than plain TCP in this run:\n\n${table(['measurement', 'contestant', 'times as fast', levelText(roundsOf(results))], rows, 2)}`
  return `## Where it does not help, and why\n\n${found}\n\n${NO_HELP}`
}

function skippedPart({ skipped }: Report): string {
  if (skipped.length === 0) return ''
  const byReason = new Map<string, string[]>()
  for (const { suite, contestant, reason } of skipped) {
    const key = `${suite}: ${reason.split('\n')[0] ?? ''}`
    byReason.set(key, [...(byReason.get(key) ?? []), contestant])
  }
  const lines = [...byReason].map(([reason, contestants]) => `- ${text(reason)} (${contestants.join(', ')})`)
  return `## Not measured\n\n${lines.join('\n')}`
}

function measurement({ suite, metric, parameters }: Result): string {
  const of = parametersText(parameters)
  return `${suite}, ${axisTitle(metric)}${of === '' ? '' : `, ${of}`}`
}

/** Of "times as fast". */
function interval({ ratio, better, rounds }: Result): string {
  if (ratio === undefined || !saysSomething(rounds.length)) return ''
  const [low, high] = better === 'higher' ? [ratio.low, ratio.high] : [1 / ratio.high, 1 / ratio.low]
  return `${low.toPrecision(2)} to ${high.toPrecision(2)}`
}

function isSame(a: Result, b: Result): boolean {
  return (
    a.suite === b.suite &&
    a.metric === b.metric &&
    parametersText(a.parameters) === parametersText(b.parameters)
  )
}
