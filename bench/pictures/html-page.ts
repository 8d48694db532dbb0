/** A report as one self-contained HTML file: conclusion, pictures, tables, the machine. No script; all text is escaped. */
import { ABLATION_MEANING, ABLATION_SUITE, ablationTable } from '../ablation-table.ts'
import { conclusion } from '../conclusion.ts'
import { levelText } from '../interval.ts'
import { quantity } from '../quantity.ts'
import { intervalText, parametersText, percentileTexts, roundsOf } from '../report-table.ts'
import type { Report, Result } from '../result.ts'
import type { Drawn } from './picture.ts'
import { headingOf } from './titles.ts'

const STYLE = `
body { font: 15px/1.45 system-ui, sans-serif; max-width: 960px; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0; width: 100% }
th, td { border-bottom: 1px solid #ddd; padding: 0.25em 0.6em; text-align: left }
td.number { text-align: right; font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto }
.wide { overflow-x: auto }
.warning { background: #fff3cd; padding: 0.6em 1em }
summary { cursor: pointer }
`

export function htmlPage(report: Report, drawn: readonly Drawn[]): string {
  const suites = [...new Set(report.results.map(({ suite }) => suite))]
  const body = [
    '<h1>Fast Sockets: measurements</h1>',
    conclusionPart(report),
    machinePart(report),
    ...suites.map(suite => suitePart(suite, report, drawn)),
    skippedPart(report),
  ].join('\n')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>Fast Sockets: measurements</title>
<style>${STYLE}</style>
</head>
<body>
${body}
</body>
</html>
`
}

/** For text, and for attributes in double quotes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

function conclusionPart(report: Report): string {
  const text = conclusion(report)
  return text === '' ? '' : `<p><strong>${escapeHtml(text)}</strong></p>`
}

function machinePart({ machine, options, command, startedAt, seconds }: Report): string {
  const rows: [string, string][] = [
    ['command', command],
    ['when', `${startedAt}, ${Math.round(seconds)} s`],
    [
      'rounds',
      `${options.rounds}${options.isQuick ? ', quick: its figures mean nothing' : ''}, seed ${options.seed}`,
    ],
    [
      'processor',
      `${machine.model}, ${machine.cores} cores, ${quantity(machine.memoryBytes, 'B')} of memory`,
    ],
    ['Node, kernel', `${machine.node}, ${machine.kernel}`],
    ['load before, after', `${machine.loadBefore.toFixed(2)}, ${machine.loadAfter.toFixed(2)}`],
  ]
  const warning = machine.isQuiet
    ? ''
    : '<p class="warning">The machine was not quiet when this run began: these figures are a hint only.</p>'
  return `${warning}${table(
    [],
    rows.map(row => row.map(cell => td(cell))),
  )}`
}

function suitePart(suite: string, report: Report, drawn: readonly Drawn[]): string {
  const results = report.results.filter(result => result.suite === suite)
  const pictures = drawn.filter(({ picture }) => picture.name.startsWith(`${suite}-`))
  const percentiles = ['p50', 'p90', 'p99', 'p99.9', 'max']
  const head = [
    'parameters',
    'contestant',
    'metric',
    ...percentiles,
    'to the baseline',
    levelText(roundsOf(results)),
  ]
  return [
    `<h2>${escapeHtml(headingOf(suite).replaceAll('`', ''))}</h2>`,
    ...pictures.map(({ svg }) => `<figure>${svg}</figure>`),
    ...(suite === ABLATION_SUITE ? [ablationPart(results)] : []),
    `<details><summary>table</summary>${table(head, results.map(row))}</details>`,
  ].join('\n')
}

function ablationPart(results: readonly Result[]): string {
  const ablation = ablationTable(results)
  if (ablation === undefined) return ''
  const head = ['technique', 'setting', ...ablation.columns.map(({ what, size }) => `${what} ${size}`)]
  const rows = ablation.rows.map(({ technique, setting, cells }) => [
    td(technique),
    td(setting),
    ...cells.map(cell => td(cell, 'number')),
  ])
  return `<p>${escapeHtml(ABLATION_MEANING)}</p><div class="wide">${table(head, rows)}</div>`
}

/** A result without latencies has its one value where the others have p50. */
function row(result: Result): string[] {
  const { parameters, contestant, metric, ratio } = result
  return [
    td(parametersText(parameters)),
    td(contestant),
    td(metric),
    ...percentileTexts(result).map(text => td(text, 'number')),
    td(ratio === undefined ? '' : ratio.median.toPrecision(3), 'number'),
    td(intervalText(result), 'number'),
  ]
}

function skippedPart({ skipped }: Report): string {
  if (skipped.length === 0) return ''
  const rows = skipped.map(({ suite, contestant, reason }) => [td(suite), td(contestant), td(reason)])
  return `<h2>not measured</h2>${table(['suite', 'contestant', 'why'], rows)}`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const first =
    head.length === 0 ? '' : `<tr>${head.map(name => `<th>${escapeHtml(name)}</th>`).join('')}</tr>`
  return `<table>${first}${rows.map(cells => `<tr>${cells.join('')}</tr>`).join('\n')}</table>`
}

function td(text: string, kind = ''): string {
  return `<td${kind === '' ? '' : ` class="${kind}"`}>${escapeHtml(text)}</td>`
}
