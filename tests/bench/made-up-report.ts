/** A made-up report, with everything that pictures and pages show. */
import { REPORT_VERSION, type Report, type Result } from '../../bench/result.ts'

/** What a report from somewhere else might say. */
export const HOSTILE = `<script>alert("1")</script> & 'more' | \`code\``
const ROUNDS = [1, 1.1, 0.9, 1.05, 0.95]

interface Made {
  readonly suite: string
  readonly contestant: string
  readonly parameters?: Result['parameters']
  readonly metric?: 'roundTrip' | 'rate'
  readonly value: number
  /** To `net-tcp`, or `as-shipped`. */
  readonly ratio?: number
}

function make({ suite, contestant, parameters = {}, metric = 'roundTrip', value, ratio }: Made): Result {
  const isTime = metric === 'roundTrip'
  return {
    suite,
    contestant,
    parameters,
    metric,
    unit: isTime ? 'us' : 'B/s',
    better: isTime ? 'lower' : 'higher',
    rounds: ROUNDS.map(factor => factor * value),
    median: value,
    ...(isTime && {
      latencies: { count: 3, p50: value, p90: 2 * value, p99: 3 * value, p999: 4 * value, max: 5 * value },
    }),
    ...(ratio !== undefined && {
      ratio: {
        to: suite === 'ablation' ? 'as-shipped' : 'net-tcp',
        median: ratio,
        low: 0.9 * ratio,
        high: 1.1 * ratio,
      },
    }),
  }
}

const sizes = [4, 64, 65_536]
const spins = [0, 50, 200]

export function madeUpReport(): Report {
  const results = [
    ...sizes.flatMap(size => [
      make({ suite: 'pingpong', contestant: 'net-tcp', parameters: { size }, value: 60 }),
      make({ suite: 'pingpong', contestant: 'net-relinked', parameters: { size }, value: 3, ratio: 0.05 }),
    ]),
    ...[
      { size: 64, plain: 1e9, ratio: 8 },
      { size: 65_536, plain: 4e9, ratio: 1.5 },
    ].flatMap(({ size, plain, ratio }) => [
      make({ suite: 'stream', contestant: 'net-tcp', parameters: { size }, metric: 'rate', value: plain }),
      make({
        suite: 'stream',
        contestant: 'net-relinked',
        parameters: { size },
        metric: 'rate',
        value: plain * ratio,
        ratio,
      }),
    ]),
    make({ suite: 'connect', contestant: 'net-tcp', value: 100 }),
    make({ suite: 'connect', contestant: 'net-half-relinked', value: 200, ratio: 2 }),
    make({ suite: 'connect', contestant: HOSTILE, value: 90, ratio: 0.9 }),
    make({
      suite: 'apps',
      contestant: 'net-relinked',
      parameters: { app: 'ftp', part: 'download' },
      metric: 'rate',
      value: 2e9,
      ratio: 1.5,
    }),
    make({
      suite: 'ablation',
      contestant: 'as-shipped',
      parameters: { size: 65_536 },
      metric: 'rate',
      value: 2e9,
    }),
    ...['no-posting', 'zcopy-off', ...spins.map(us => `spin-${us}-us`)].map(contestant =>
      make({
        suite: 'ablation',
        contestant,
        parameters: { size: 65_536 },
        metric: 'rate',
        value: 1e9,
        ratio: 0.5,
      }),
    ),
  ]
  return {
    version: REPORT_VERSION,
    command: `fastsockets bench ${HOSTILE}`,
    startedAt: '2026-01-02T03:04:05.000Z',
    seconds: 120,
    machine: {
      cores: 2,
      model: HOSTILE,
      memoryBytes: 8e9,
      node: 'v20.20.2',
      kernel: 'Linux 6.1',
      loadBefore: 1.5,
      loadAfter: 2,
      isQuiet: false,
    },
    options: { rounds: 5, isQuick: false, seed: 1 },
    results,
    skipped: [{ suite: 'pingpong', contestant: 'c-limit', reason: `there is no compiler ${HOSTILE}` }],
  }
}
