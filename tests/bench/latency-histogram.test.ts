import t from 'tap'
import { LatencyHistogram } from '../../bench/latency-histogram.ts'

const SAMPLES = 1000

t.test('percentiles are within 0.1 %, whatever the magnitude, and the maximum is exact', async t => {
  for (const unit of [1, 1000, 1_000_003, 987_654_321]) {
    const histogram = new LatencyHistogram()
    for (let i = SAMPLES; i >= 1; i--) histogram.record(i * unit)
    for (const percent of [0.1, 50, 90, 99, 99.9]) {
      const exact = Math.round((percent * SAMPLES) / 100) * unit
      const found = histogram.percentile(percent)
      t.ok(
        found >= exact && found <= exact * 1.001 + 1,
        `${percent} % of up to ${SAMPLES * unit} ns: ${found}`,
      )
    }
    t.equal(histogram.percentile(100), SAMPLES * unit)
  }
})

t.test('what goes to another process and is merged there is as if it had been recorded there', async t => {
  const all = new LatencyHistogram()
  const merged = new LatencyHistogram()
  for (let part = 0; part < 3; part++) {
    const own = new LatencyHistogram()
    for (let i = 1; i <= SAMPLES; i++) {
      own.record(i * 977 ** part)
      all.record(i * 977 ** part)
    }
    merged.merge(LatencyHistogram.decode(JSON.parse(JSON.stringify(own.encode()))))
  }
  t.same(merged.percentiles(), all.percentiles())
  t.equal(merged.count, 3 * SAMPLES)
})

t.test('a clock that stood still counts as a nanosecond, and nothing at all has no percentiles', async t => {
  const histogram = new LatencyHistogram()
  t.ok(Number.isNaN(histogram.percentile(50)))
  histogram.record(0)
  histogram.recordMs(1)
  t.same(histogram.percentiles(), { count: 2, p50: 0.001, p90: 1000, p99: 1000, p999: 1000, max: 1000 })
})
