/** The targets of sockets, as ratios to plain `node:net` over TCP in the same run (`README.md`). */
import Table from 'cli-table3'
import { levelText } from './interval.ts'
import { intervalText } from './report-table.ts'
import type { Parameters, Report, Result } from './result.ts'
import { LARGE, SMALL } from './sizes.ts'

const MEBI = 1024 * 1024

interface Target {
  readonly what: string
  readonly suite: string
  readonly contestant: string
  readonly metric: string
  /** Those that the result must have; it may have others. */
  readonly parameters: Parameters
  readonly atMost?: number
  readonly atLeast?: number
}

const RELINKED = { contestant: 'net-relinked' } as const

export const TARGETS: readonly Target[] = [
  { what: '64 B echo', suite: 'pingpong', metric: 'roundTrip', parameters: { size: SMALL }, atMost: 1 / 8 },
  { what: '64 B writes', suite: 'stream', metric: 'rate', parameters: { size: SMALL }, atLeast: 5 },
  { what: '64 KiB writes', suite: 'stream', metric: 'rate', parameters: { size: LARGE }, atLeast: 3 },
  { what: '1 MiB writes', suite: 'stream', metric: 'rate', parameters: { size: MEBI }, atLeast: 3 },
  {
    what: '1 MiB writes, CPU time for a gigabyte',
    suite: 'cpu',
    metric: 'cpuPerGigabyte',
    parameters: { size: MEBI },
    atMost: 1,
  },
  { what: 'new connections a second', suite: 'connect', metric: 'rate', parameters: {}, atLeast: 5 },
  { what: 'HTTP requests a second, keep-alive', ...rateOf('http', 'keep-alive'), atLeast: 1.5 },
  { what: 'HTTP requests a second, a connection each', ...rateOf('http', 'connection each'), atLeast: 3 },
  { what: 'http2, bytes', ...rateOf('http2', 'download'), atLeast: 1 },
  { what: 'tls, bytes', ...rateOf('tls', 'stream 64 KiB'), atLeast: 1 },
  {
    what: 'more processes than cores: round trips',
    suite: 'oversubscribed',
    metric: 'roundTrips',
    parameters: {},
    atLeast: 1,
  },
  {
    what: 'more processes than cores: bytes',
    suite: 'oversubscribed',
    metric: 'rate',
    parameters: {},
    atLeast: 1,
  },
].map(target => ({ ...RELINKED, ...target }))

/** For pairs of which one side is not relinked: relinking can gain nothing, and may lose no more than this. */
const NOTHING_LOST: readonly Target[] = [
  { peer: 'server', contestant: 'net-half-relinked' },
  { peer: 'client', contestant: 'net-relinked-server' },
].flatMap(({ peer, contestant }) =>
  [
    { what: '64 B echo', metric: 'roundTrip', parameters: { size: SMALL }, atMost: 1.03 },
    { what: '64 KiB writes', metric: 'rate', parameters: { size: LARGE }, atLeast: 0.97 },
    {
      what: 'a connection',
      metric: 'connection',
      parameters: { options: 'written out' },
      atMost: 1.03,
    },
    {
      what: 'a connection whose options are spread',
      metric: 'connection',
      parameters: { options: 'spread' },
      atMost: 1.03,
    },
  ].map(target => ({
    suite: 'plain-peers',
    contestant,
    ...target,
    what: `${peer} not relinked: ${target.what}`,
  })),
)

/** One for each target. */
export interface TargetRow {
  readonly what: string
  readonly promise: string
  /** To TCP, with its interval; both empty if it was not measured. */
  readonly ratio: string
  readonly interval: string
  readonly verdict: 'holds' | 'MISSED' | 'not measured'
}

export function targetRows(report: Report): TargetRow[] {
  return [...TARGETS, ...NOTHING_LOST].map(target => {
    const { what } = target
    const result = find(report, target)
    const promise = promiseOf(target)
    if (result?.ratio === undefined)
      return { what, promise, ratio: '', interval: '', verdict: 'not measured' }
    const { median } = result.ratio
    const verdict = isMet(target, median) ? 'holds' : 'MISSED'
    return { what, promise, ratio: median.toPrecision(3), interval: intervalText(result), verdict }
  })
}

export function targetTable(report: Report): string {
  const table = new Table({
    head: ['target', 'ratio to TCP', levelText(report.options.rounds), 'promise', ''],
    style: { head: [], border: [], compact: true },
  })
  for (const { what, ratio, interval, promise, verdict } of targetRows(report)) {
    table.push([what, ratio, interval, promise, verdict])
  }
  return table.toString()
}

function find(report: Report, target: Target): Result | undefined {
  return report.results.find(
    result =>
      result.suite === target.suite &&
      result.contestant === target.contestant &&
      result.metric === target.metric &&
      Object.entries(target.parameters).every(([name, value]) => result.parameters[name] === value),
  )
}

/** What one part of an app reaches. */
function rateOf(app: string, part: string): Pick<Target, 'suite' | 'metric' | 'parameters'> {
  return { suite: 'apps', metric: 'rate', parameters: { app, part } }
}

function isMet({ atMost, atLeast }: Target, ratio: number): boolean {
  return ratio <= (atMost ?? Number.POSITIVE_INFINITY) && ratio >= (atLeast ?? 0)
}

function promiseOf({ atMost, atLeast }: Target): string {
  if (atLeast !== undefined) return `at least ${atLeast}`
  return atMost !== undefined && atMost < 0.5 ? `at most 1/${1 / atMost}` : `at most ${atMost}`
}
