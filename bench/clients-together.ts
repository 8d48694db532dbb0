/** What several clients of one server have done at the same time. */
import { decodeLatencies } from './half.ts'
import type { Counted } from './half-questions.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import type { Parameters } from './result.ts'
import type { Sample } from './suite.ts'

/** The sum of their rates, and the round trips of all. */
export function roundTripsTogether(all: readonly Counted[], parameters: Parameters): Sample[] {
  const latencies = new LatencyHistogram()
  let rate = 0
  for (const counted of all) {
    const own = decodeLatencies(counted)
    latencies.merge(own)
    rate += own.count / (counted.ms / 1000)
  }
  const value = latencies.percentiles().p50
  return [
    { parameters, metric: 'rate', unit: '1/s', better: 'higher', value: rate },
    { parameters, metric: 'roundTrip', unit: 'us', better: 'lower', value, latencies },
  ]
}
