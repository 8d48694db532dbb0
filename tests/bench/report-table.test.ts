/** What a report looks like for people. The report is made up. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { ablationTable } from '../../bench/ablation-table.ts'
import { VARIANTS } from '../../bench/ablation-variants.ts'
import { reportTables } from '../../bench/report-table.ts'
import type { Result } from '../../bench/result.ts'
import { targetTable } from '../../bench/targets.ts'
import { madeUpReport } from './made-up-report.ts'

const README = new URL('../../../bench/README.md', import.meta.url)

/** Of a table for a terminal, without its lines. */
function rowsOf(text: string): string[][] {
  const lines = text.split('\n').filter(line => line.startsWith('│'))
  return lines.map(line => line.split('│').slice(1, -1)).map(cells => cells.map(cell => cell.trim()))
}

function step(contestant: string, ratio: number, parameters: Result['parameters'], metric = 'rate'): Result {
  const isRate = metric === 'rate'
  return {
    suite: 'ablation',
    contestant,
    parameters,
    metric,
    unit: isRate ? 'B/s' : 'us',
    better: isRate ? 'higher' : 'lower',
    rounds: [1, 1, 1, 1, 1],
    median: 1,
    ratio: { to: 'as-shipped', median: ratio, low: 0.9 * ratio, high: 1.1 * ratio },
  }
}

t.test('latencies have five percentiles, and nothing that says the same twice', async t => {
  const text = reportTables(madeUpReport())
  const latencies = rowsOf(text.slice(text.indexOf('pingpong: roundTrip'), text.indexOf('stream: rate')))
  t.strictSame(latencies[0], [
    'parameters',
    'contestant',
    'p50',
    'p90',
    'p99',
    'p99.9',
    'max',
    'to the baseline',
    '93 %',
  ])
  t.ok(
    latencies.some(
      row =>
        row.join(' ') === '64 B net-relinked 3.00 us 6.00 us 9.00 us 12.0 us 15.0 us 0.0500 0.0450 to 0.0550',
    ),
  )
  const rates = rowsOf(text.slice(text.indexOf('apps: rate'), text.indexOf('\nablation\n')))
  t.strictSame(rates[0], ['parameters', 'contestant', 'median', 'to the baseline', '93 %'])
})

t.test('techniques are one table: settings down, workloads across', async t => {
  const text = reportTables(madeUpReport())
  t.notMatch(text, /ablation: rate/)
  const rows = rowsOf(text.slice(text.indexOf('\nablation\n'), text.indexOf('not measured')))
  t.strictSame(rows.slice(-6), [
    ['as-shipped', 'sockets', '2.00 GB/s'],
    ['receive posting', 'off', '0.500'],
    ['ZCopy', 'off', '0.500'],
    ['spinning', '0 us', '0.500'],
    ['spinning', '50 us', '0.500'],
    ['spinning', '200 us', '0.500'],
  ])
})

t.test(
  'faster is above 1 for times and for rates, and what the interval leaves open is in brackets',
  async t => {
    const table = ablationTable([
      step('no-posting', 0.5, { over: 'net-relinked', size: 65_536 }),
      step('no-posting', 2, { over: 'net-relinked', size: 64 }, 'roundTrip'),
      step('no-posting', 1.05, { over: 'net-relinked', size: 64 }),
      step('zcopy-off', 4, { over: 'net-relinked', size: 65_536 }),
      step('credits-1', 0.25, { over: 'am-events', size: 64 }),
      step('zcopy-from-128-KiB', 3, { over: 'net-relinked', size: 65_536 }),
      step('of-tomorrow', 5, { size: 64 }),
    ])
    t.strictSame(table, {
      columns: [
        { what: 'stream', size: '64 B' },
        { what: 'stream', size: '64 KiB' },
        { what: 'round trip', size: '64 B' },
      ],
      rows: [
        { technique: 'receive posting', setting: 'off', cells: ['(1.05)', '0.500', '0.500'] },
        { technique: 'ZCopy', setting: 'off', cells: ['', '4.00', ''] },
        { technique: 'ZCopy', setting: 'from 128 KiB', cells: ['', '3.00', ''] },
        { technique: 'credits', setting: '1', cells: ['0.250', '', ''] },
        { technique: 'of-tomorrow', setting: '', cells: ['5.00', '', ''] },
      ],
    })
    t.equal(ablationTable([]), undefined)
  },
)

t.test('README.md has each technique, and each step has a name of its own', async t => {
  const readme = readFileSync(README, 'utf8')
  for (const technique of new Set(VARIANTS.map(variant => variant.technique)))
    if (technique !== 'as-shipped') t.match(readme, `\n${technique} | `)
  const keys = VARIANTS.map(({ name, over }) => `${name} ${over}`)
  t.equal(new Set(keys).size, keys.length)
})

t.test('the loss that a plain program may have is 3 %, for every measurement', async t => {
  const report = madeUpReport()
  const lost = (contestant: string, options: string, median: number): Result => ({
    suite: 'plain-peers',
    contestant,
    parameters: { options },
    metric: 'connection',
    unit: 'us',
    better: 'lower',
    rounds: [1],
    median: 1,
    ratio: { to: 'net-tcp', median, low: median, high: median },
  })
  for (const [contestant, options, what] of [
    ['net-half-relinked', 'written out', 'server not relinked: a connection'],
    ['net-half-relinked', 'spread', 'server not relinked: a connection whose options are spread'],
    ['net-relinked-server', 'written out', 'client not relinked: a connection'],
    ['net-relinked-server', 'spread', 'client not relinked: a connection whose options are spread'],
  ] as const) {
    const verdict = (median: number): string | undefined =>
      rowsOf(targetTable({ ...report, results: [lost(contestant, options, median)] }))
        .find(([row]) => row === what)
        ?.at(-1)
    t.equal(verdict(1.03), 'holds')
    t.equal(verdict(1.04), 'MISSED')
  }
})
