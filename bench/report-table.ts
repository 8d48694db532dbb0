/**
 * A report as tables: for each suite and metric, parameters and contestants down. The suite `ablation` has one table of
 * its own.
 */
import Table from 'cli-table3'
import { ABLATION_MEANING, ABLATION_SUITE, ablationTable } from './ablation-table.ts'
import { levelText, saysSomething } from './interval.ts'
import { quantity, sizeText } from './quantity.ts'
import type { Parameters, Report, Result } from './result.ts'

const STYLE = { head: [], border: [], compact: true }

export function reportTables(report: Report): string {
  const groups = new Map<string, Result[]>()
  for (const result of report.results) {
    if (result.suite === ABLATION_SUITE) continue
    const key = `${result.suite}: ${result.metric}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [result])
    else group.push(result)
  }
  const tables = [...groups].map(([title, results]) => `${title}\n${groupTable(results)}`)
  const ablation = ablationText(report)
  if (ablation !== undefined) tables.push(ablation)
  if (report.skipped.length > 0) tables.push(`not measured\n${skippedTable(report)}`)
  return tables.join('\n\n')
}

/** Percentiles where there are latencies; else the one value that there is. */
function groupTable(results: readonly Result[]): string {
  const hasLatencies = results.some(({ latencies }) => latencies !== undefined)
  const values = hasLatencies ? ['p50', 'p90', 'p99', 'p99.9', 'max'] : ['median']
  const table = new Table({
    head: ['parameters', 'contestant', ...values, 'to the baseline', levelText(roundsOf(results))],
    colAligns: ['left', 'left', ...values.map(() => 'right' as const), 'right', 'left'],
    style: STYLE,
  })
  const ordered = [...new Set(results.map(result => parametersText(result.parameters)))]
  for (const parameters of ordered) {
    for (const result of results) {
      if (parametersText(result.parameters) !== parameters) continue
      const own = hasLatencies ? percentileTexts(result) : [quantity(result.median, result.unit)]
      table.push([parameters, result.contestant, ...own, ...ratioTexts(result)])
    }
  }
  return table.toString()
}

/** p50, p90, p99, p99.9, max. A contestant that tells no more than its median has only that. */
export function percentileTexts({ median, unit, latencies }: Result): string[] {
  if (latencies === undefined) return [quantity(median, unit), '', '', '', '']
  const { p50, p90, p99, p999, max } = latencies
  return [p50, p90, p99, p999, max].map(value => quantity(value, unit))
}

function ratioTexts(result: Result): string[] {
  const { ratio } = result
  return ratio === undefined ? ['', ''] : [ratio.median.toPrecision(3), intervalText(result)]
}

/** Of the ratio; nothing where the rounds are too few. */
export function intervalText({ ratio, rounds }: Result): string {
  if (ratio === undefined || !saysSomething(rounds.length)) return ''
  return `${ratio.low.toPrecision(3)} to ${ratio.high.toPrecision(3)}`
}

/** All results of a report have as many. */
export function roundsOf([first]: readonly Result[]): number {
  return first?.rounds.length ?? 0
}

function ablationText(report: Report): string | undefined {
  const ablation = ablationTable(report.results)
  if (ablation === undefined) return undefined
  const table = new Table({
    head: [
      'technique',
      'setting',
      ...ablation.columns.map(({ what, size }) => `${what.replace(' ', '\n')}\n${size}`),
    ],
    colAligns: ['left', 'left', ...ablation.columns.map(() => 'right' as const)],
    style: STYLE,
  })
  for (const { technique, setting, cells } of ablation.rows) table.push([technique, setting, ...cells])
  return `${ABLATION_SUITE}\n${ABLATION_MEANING}\n${table.toString()}`
}

export function parametersText(parameters: Parameters): string {
  return Object.entries(parameters)
    .map(([name, value]) => (name === 'size' ? sizeText(Number(value)) : `${name} ${value}`))
    .join(', ')
}

function skippedTable(report: Report): string {
  const table = new Table({ head: ['suite', 'contestant', 'why'], style: STYLE })
  for (const { suite, contestant, reason } of report.skipped) {
    table.push([suite, contestant, reason.split('\n')[0] ?? ''])
  }
  return table.toString()
}
