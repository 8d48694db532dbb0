/** The conclusion of a report, in a few sentences. */
import { saysSomething } from './interval.ts'
import type { Parameters, Report, Result } from './result.ts'
import { BASELINE } from './rounds.ts'
import { LARGE, SMALL } from './sizes.ts'
import { timesAsFast } from './times-as-fast.ts'

const RELINKED = 'net-relinked'

interface Point {
  readonly suite: string
  readonly metric: string
  readonly parameters: Parameters
  readonly text: (times: string) => string
}

const GAINS: readonly Point[] = [
  {
    suite: 'pingpong',
    metric: 'roundTrip',
    parameters: { size: SMALL },
    text: times => `a 64-byte round trip is ${times} times as fast as over plain TCP`,
  },
  {
    suite: 'stream',
    metric: 'rate',
    parameters: { size: LARGE },
    text: times => `a stream of 64 KiB writes ${times} times`,
  },
  { suite: 'connect', metric: 'rate', parameters: {}, text: times => `a new connection ${times} times` },
  {
    suite: 'apps',
    metric: 'rate',
    parameters: { app: 'http', part: 'keep-alive' },
    text: times => `an HTTP request with keep-alive ${times} times`,
  },
]
const LOSSES: readonly Point[] = [
  {
    suite: 'warmup',
    metric: 'tripsOfPairs',
    parameters: { second: 1 },
    text: times => `8 pairs of new processes have ${times} of TCP's speed in their first second`,
  },
  {
    suite: 'memory',
    metric: 'bytesPerPeer',
    parameters: {},
    text: times => `a peer takes ${times} times the memory`,
  },
  {
    suite: 'idle',
    metric: 'cpu',
    parameters: {},
    text: times => `an idle process uses ${times} times the CPU time`,
  },
]

/** Two sentences at most; empty if the report has none of these, or is a quick one, whose figures mean nothing. */
export function conclusion(report: Report): string {
  if (report.options.isQuick) return ''
  const gains = GAINS.flatMap(point => textOf(report, point, result => timesAsFast(result).toPrecision(2)))
  const losses = LOSSES.flatMap(point => textOf(report, point, costOf))
  return [
    ...(gains.length === 0 ? [] : [`Between two warm relinked programs of one host, ${listed(gains)}.`]),
    ...(losses.length === 0 ? [] : [`The price: ${listed(losses)}.`]),
  ].join(' ')
}

/** The ratio of a result that is worse with its whole interval; undefined for any other. */
function costOf(result: Result): string | undefined {
  const { better, ratio, rounds } = result
  if (ratio === undefined || !saysSomething(rounds.length)) return undefined
  if (better === 'higher') return ratio.high < 1 ? ratio.median.toPrecision(2) : undefined
  return ratio.low > 1 ? ratio.median.toPrecision(2) : undefined
}

function textOf(
  { results }: Report,
  { suite, metric, parameters, text }: Point,
  figureOf: (result: Result) => string | undefined,
): string[] {
  const result = results.find(
    one =>
      one.contestant === RELINKED &&
      one.ratio?.to === BASELINE &&
      one.suite === suite &&
      one.metric === metric &&
      Object.entries(parameters).every(([name, value]) => one.parameters[name] === value),
  )
  const figure = result === undefined ? undefined : figureOf(result)
  return figure === undefined ? [] : [text(figure)]
}

function listed(texts: readonly string[]): string {
  return texts.length < 2 ? (texts[0] ?? '') : `${texts.slice(0, -1).join(', ')} and ${texts.at(-1)}`
}
