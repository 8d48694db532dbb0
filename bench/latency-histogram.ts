/**
 * A histogram of latencies with the buckets of HdrHistogram: three significant digits, whatever the magnitude. Node has
 * one (`perf_hooks.createHistogram`), but it does not leave its process, and here the samples of many processes and
 * rounds become one distribution.
 *
 * Values are whole nanoseconds. Up to 2047 each value has a bucket of its own; above, every power of two is divided into
 * 1024 buckets.
 */
import type { Percentiles } from './result.ts'

/** Each power of two has this many buckets: two neighbours differ by less than 0.1 %. */
const HALF_COUNT = 1024
const HALF_BITS = 10
/** 2^41 ns are 36 minutes. */
const VALUE_BITS_MAX = 41
const VALUE_MAX = 2 ** VALUE_BITS_MAX - 1
const BUCKET_COUNT = (VALUE_BITS_MAX - HALF_BITS + 1) * HALF_COUNT

const NS_PER_US = 1000
const NS_PER_MS = 1e6

/** As it goes from one process to another: bucket, count, bucket, count, … and the largest value. */
export interface EncodedHistogram {
  readonly maxNs: number
  readonly counts: readonly number[]
}

export class LatencyHistogram {
  readonly #counts = new Float64Array(BUCKET_COUNT)
  #count = 0
  #maxNs = 0

  get count(): number {
    return this.#count
  }

  /** Allocates nothing. What took less than a nanosecond, by a clock that stood still, counts as one. */
  record(ns: number): void {
    this.#add(ns, 1)
  }

  /** From a difference of `performance.now()`. */
  recordMs(ms: number): void {
    this.#add(ms * NS_PER_MS, 1)
  }

  #add(ns: number, count: number): void {
    const value = Math.min(Math.max(1, Math.round(ns)), VALUE_MAX)
    const bucket = bucketOf(value)
    this.#counts[bucket] = (this.#counts[bucket] as number) + count
    this.#count += count
    if (value > this.#maxNs) this.#maxNs = value
  }

  merge(other: LatencyHistogram): void {
    for (let i = 0; i < BUCKET_COUNT; i++) {
      this.#counts[i] = (this.#counts[i] as number) + (other.#counts[i] as number)
    }
    this.#count += other.#count
    this.#maxNs = Math.max(this.#maxNs, other.#maxNs)
  }

  /** In nanoseconds; NaN if nothing was recorded. */
  percentile(percent: number): number {
    // 99.9 % of 1000 are 999, whatever the last bit of 0.999 says.
    const wanted = Math.max(1, Math.ceil((percent * this.#count) / 100 - 1e-6))
    let seen = 0
    for (let i = 0; i < BUCKET_COUNT; i++) {
      seen += this.#counts[i] as number
      if (seen >= wanted) return Math.min(lastOf(i), this.#maxNs)
    }
    return Number.NaN
  }

  /** In microseconds. */
  percentiles(): Percentiles {
    const us = (percent: number): number => this.percentile(percent) / NS_PER_US
    const p = { p50: us(50), p90: us(90), p99: us(99), p999: us(99.9) }
    return { count: this.#count, ...p, max: this.#maxNs / NS_PER_US }
  }

  encode(): EncodedHistogram {
    const counts: number[] = []
    for (let i = 0; i < BUCKET_COUNT; i++) {
      const count = this.#counts[i] as number
      if (count > 0) counts.push(i, count)
    }
    return { maxNs: this.#maxNs, counts }
  }

  static decode({ maxNs, counts }: EncodedHistogram): LatencyHistogram {
    const histogram = new LatencyHistogram()
    for (let i = 0; i + 1 < counts.length; i += 2) {
      const bucket = counts[i] as number
      const count = counts[i + 1] as number
      histogram.#counts[bucket] = (histogram.#counts[bucket] as number) + count
      histogram.#count += count
    }
    histogram.#maxNs = maxNs
    return histogram
  }
}

function bucketOf(value: number): number {
  if (value < 2 * HALF_COUNT) return value
  const shift = Math.floor(Math.log2(value)) - HALF_BITS
  return shift * HALF_COUNT + Math.floor(value / 2 ** shift)
}

/** The largest value of a bucket. */
function lastOf(bucket: number): number {
  if (bucket < 2 * HALF_COUNT) return bucket
  const shift = Math.floor(bucket / HALF_COUNT) - 1
  return (bucket - shift * HALF_COUNT + 1) * 2 ** shift - 1
}
