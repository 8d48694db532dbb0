/**
 * What the daemon counts, in plain numbers: prom-client's own counters make a text of their labels for every request, and
 * take a tenth of a start to load. They become metrics when somebody asks.
 */

/** The bounds of the buckets of all times. */
const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]

type Labels = Readonly<Record<string, string | number>>

/** One line of a metric; its name is the metric's own unless it says otherwise. */
export interface Sample {
  readonly metricName?: string
  readonly labels: Labels
  readonly value: number
}

/** How often, by whatever distinguishes it. */
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

/** How often; 0 is told, too. */
export class Count {
  #value = 0

  inc(more = 1): void {
    this.#value += more
  }

  samples(): Sample[] {
    return [{ labels: {}, value: this.#value }]
  }
}

/** How long something took. */
export class Times {
  /** By the first bucket that a time is within; the last is for those that are within none. */
  readonly #counts: number[] = Array(BUCKETS_S.length + 1).fill(0)
  #sumS = 0

  add(durationMs: number): void {
    const durationS = durationMs / 1000
    let bucket = 0
    while (bucket < BUCKETS_S.length && durationS > (BUCKETS_S[bucket] as number)) bucket += 1
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.#sumS += durationS
  }

  /** As Prometheus has it: each bucket counts those before it, too. */
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
