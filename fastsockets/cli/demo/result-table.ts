/** The table that the demo prints. */
import Table from 'cli-table3'
import { type Comparison, JOBS, type Outcome } from './measurement.ts'

const HEAD = ['job', 'programs', 'wire', 'MB/s', 'p50 us', 'p99 us', 'times faster']

export function resultTable(comparisons: readonly Comparison[]): string {
  const table = new Table({
    head: HEAD,
    colAligns: ['left', 'left', 'left', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [], compact: true },
  })
  for (const { job, plain, relinked, timesFaster } of comparisons) {
    table.push([JOBS[job], 'plain', ...cells(plain), ''])
    table.push(['', 'relinked', ...cells(relinked), timesFaster.toFixed(2)])
  }
  return table.toString()
}

function cells({ wire, megabytesPerSecond, roundTripP50Us, roundTripP99Us }: Outcome): string[] {
  return [wire, number(megabytesPerSecond, 0), number(roundTripP50Us, 1), number(roundTripP99Us, 1)]
}

function number(value: number | undefined, digits: number): string {
  return value === undefined ? '' : value.toFixed(digits)
}
