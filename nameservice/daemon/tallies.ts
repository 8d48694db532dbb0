/**
 * The daemon's counts, as plain numbers: prom-client's own counters make a text of their labels for every request,
 * and take a tenth of a start to load. The counts become metrics when Prometheus asks.
 */

/** Upper bounds of the buckets of all times, in seconds. */
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]

type Labels = Readonly<Record<string, string | number>>

/** One line of a metric. Without `metricName` it has the metric's own name. */
export interface Sample {
  readonly metricName?: string
  readonly labels: Labels
  readonly value: number
}

/** Counts by key; each key has its labels. */
export class Tally<K> {
  readonly #counts = new Map<K, number>()
  readonly #labelsOf: (key: K) => Labels

  constructor(labelsOf: (key: K) => Labels) {
    this.#labelsOf = labelsOf
  }

  add(key: K, more = 1): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + more)
  }

  samples(): Sample[] {
    return [...this.#counts].map(([key, value]) => ({ labels: this.#labelsOf(key), value }))
  }
}

/** One count, shown even if it is 0. */
export class Count {
  #value = 0

  inc(more = 1): void {
    this.#value += more
  }

  samples(): Sample[] {
    return [{ labels: {}, value: this.#value }]
  }
}

/** A histogram of durations. */
export class Times {
  /** Counts by the first bucket that a time is within; the last one is for times beyond all bounds. */
  readonly #counts: number[] = Array(BUCKETS_S.length + 1).fill(0)
  #sumS = 0

  add(durationMs: number): void {
    const durationS = durationMs / 1000
    let bucket = 0
    while (bucket < BUCKETS_S.length && durationS > (BUCKETS_S[bucket] as number)) bucket += 1
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.#sumS += durationS
  }

  /** Cumulative, as Prometheus demands: each bucket includes those before it. */
  samples(name: string, labels: Labels): Sample[] {
    let count = 0
    const buckets = this.#counts.map((more, i) => {
      count += more
      return { metricName: `${name}_bucket`, labels: { le: BUCKETS_S[i] ?? '+Inf', ...labels }, value: count }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sumS },
      { metricName: `${name}_count`, labels, value: count },
    ]
  }
}
