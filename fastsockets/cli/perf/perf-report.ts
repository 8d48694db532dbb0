/** The results of `fastsockets perf`, as JSON and for people. */
import type { RecordableHistogram } from 'node:perf_hooks'
import Table from 'cli-table3'
import type { FallbackReason } from '../../reasons.ts'
import type { PerfTransport } from './perf-layout.ts'
import type { WireCount } from './wire-counts.ts'

export const PERF_TESTS = ['ping-pong', 'throughput', 'connect'] as const
export type PerfTest = (typeof PERF_TESTS)[number]

export interface PerfReport {
  /** Version of this report. */
  readonly version: 1
  readonly test: PerfTest
  readonly target: { readonly host: string; readonly port: number }
  /** The kinds of sockets of the two programs. */
  readonly transport: {
    readonly client: PerfTransport
    readonly server: PerfTransport
    readonly poll: boolean
  }
  /** The wire (`shm`, `verbs`, `tcp`), and the reason if it is not a fast one. */
  readonly wire: string
  readonly reason?: FallbackReason
  /** For a test of connections: how many used which wire, the most common first, which is also in `wire`. */
  readonly wires?: readonly WireCount[]
  /** Bytes of a message; a test of connections has none. */
  readonly size?: number
  /** Duration of the warm-up, which is not measured. */
  readonly warmUpSeconds: number
  /** Measured time: from the start of the first measured operation to the end of the last. */
  readonly seconds: number
  /** Measured round trips, messages or connections. */
  readonly count: number
  readonly perSecond: number
  /** Throughput by the server's clock, from the ASK to the end of the stream. */
  readonly bytesPerSecond?: number
  /** Latencies of round trips, or of connects up to the server's first bytes. */
  readonly latencyUs?: Latencies
}

export interface Latencies {
  readonly min: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  readonly mean: number
  /** The standard deviation. */
  readonly stddev: number
}

export function latenciesUs(histogram: RecordableHistogram): Latencies {
  const us = (percentile: number): number => histogram.percentile(percentile) / 1000
  return {
    min: histogram.min / 1000,
    p50: us(50),
    p90: us(90),
    p99: us(99),
    p999: us(99.9),
    max: histogram.max / 1000,
    mean: histogram.mean / 1000,
    stddev: histogram.stddev / 1000,
  }
}

function wireText({ wire, reason }: Pick<WireCount, 'wire' | 'reason'>): string {
  return reason === undefined ? wire : `${wire}, because ${reason.code}: ${reason.text}`
}

export function describeReport(report: PerfReport): string {
  const { test, target, transport, wire, reason, size, warmUpSeconds, seconds, count, perSecond, latencyUs } =
    report
  const table = new Table({ style: { head: [], border: [], compact: true } })
  const { client, server, poll } = transport
  table.push(
    ['test', `${test}${size === undefined ? '' : `, ${size} bytes`}, with ${target.host}:${target.port}`],
    ['programs', `client ${client}, server ${server}${poll ? ', polling' : ', by the event loop'}`],
    ...(report.wires !== undefined && report.wires.length > 1
      ? report.wires.map(one => ['wire', `${wireText(one)}: ${one.count} connections`])
      : [['wire', wireText({ wire, ...(reason && { reason }) })]]),
    [
      'measured',
      `${count} in ${seconds.toFixed(2)} s, ${Math.round(perSecond)} a second, after ${warmUpSeconds} s of warm-up`,
    ],
  )
  if (report.bytesPerSecond !== undefined) {
    table.push(['rate', `${(report.bytesPerSecond / 1e6).toFixed(1)} MB/s at the receiver`])
  }
  if (latencyUs !== undefined) {
    const { min, p50, p90, p99, p999, max, mean, stddev } = latencyUs
    const what = test === 'connect' ? 'connect' : 'round trip'
    const latencies = { min, p50, p90, p99, 'p99.9': p999, max, mean, 'std dev': stddev }
    for (const [name, us] of Object.entries(latencies)) table.push([`${what} ${name}`, `${us.toFixed(2)} us`])
  }
  return table.toString()
}
