/** A report as tables: for each suite and metric, contestants down and parameters across if there is one, else all down. */
import Table from 'cli-table3'
import { quantity, sizeText } from './quantity.ts'
import type { Parameters, Report, Result } from './result.ts'

const STYLE = { head: [], border: [], compact: true }

export function reportTables(report: Report): string {
  const groups = new Map<string, Result[]>()
  for (const result of report.results) {
    const key = `${result.suite}: ${result.metric}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [result])
    else group.push(result)
  }
  const tables = [...groups].map(([title, results]) => `${title}\n${groupTable(results)}`)
  if (report.skipped.length > 0) tables.push(`not measured\n${skippedTable(report)}`)
  return tables.join('\n\n')
}

function groupTable(results: readonly Result[]): string {
  const table = new Table({
    head: ['parameters', 'contestant', 'median', 'p50', 'p99', 'p99.9', 'to the baseline', '(95 %)'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'left'],
    style: STYLE,
  })
  const ordered = [...new Set(results.map(result => parametersText(result.parameters)))]
  for (const parameters of ordered) {
    for (const result of results) {
      if (parametersText(result.parameters) === parameters) table.push(row(parameters, result))
    }
  }
  return table.toString()
}

function row(parameters: string, { contestant, median, unit, latencies, ratio }: Result): string[] {
  const us = (value: number | undefined): string => (value === undefined ? '' : quantity(value, 'us'))
  return [
    parameters,
    contestant,
    quantity(median, unit),
    us(latencies?.p50),
    us(latencies?.p99),
    us(latencies?.p999),
    ratio === undefined ? '' : ratio.median.toPrecision(3),
    ratio === undefined ? '' : `${ratio.low.toPrecision(3)} to ${ratio.high.toPrecision(3)}`,
  ]
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
