/**
 * How many requests were answered, and how fast: what prom-client's own counters and histograms tell, without the text of
 * the labels that those make for every request. It is made when somebody asks.
 */
import { Counter, type Metric, type Registry } from 'prom-client'

const BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]

/** Of one operation. */
interface Answers {
  readonly byStatus: Map<number, number>
  /** By the first bucket that a time is within; the last is for those that are within none. */
  readonly byTime: number[]
  sumS: number
}

interface Sample {
  readonly metricName: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

export class AnswerMetrics {
  readonly #byOperation = new Map<string, Answers>()

  constructor(registry: Registry, prefix: string) {
    const byOperation = this.#byOperation
    new Counter({
      name: `${prefix}requests_total`,
      help: 'Requests that were answered, by operation and status',
      labelNames: ['operation', 'status'],
      registers: [registry],
      collect() {
        this.reset()
        for (const [operation, { byStatus }] of byOperation) {
          for (const [status, count] of byStatus) this.inc({ operation, status }, count)
        }
      },
    })
    const name = `${prefix}request_seconds`
    const times = {
      name,
      help: 'Time from a request to its answer',
      type: 'histogram',
      get: async () => ({ ...times, values: this.#samples(name) }),
    }
    // A registry asks nothing else of a metric than what it says of itself.
    registry.registerMetric(times as unknown as Metric)
  }

  handleAnswer(operation: string, status: number, durationMs: number): void {
    const answers = this.#answersOf(operation)
    answers.byStatus.set(status, (answers.byStatus.get(status) ?? 0) + 1)
    const durationS = durationMs / 1000
    let bucket = 0
    while (bucket < BUCKETS_S.length && durationS > (BUCKETS_S[bucket] as number)) bucket += 1
    answers.byTime[bucket] = (answers.byTime[bucket] as number) + 1
    answers.sumS += durationS
  }

  #answersOf(operation: string): Answers {
    const known = this.#byOperation.get(operation)
    if (known !== undefined) return known
    const answers = { byStatus: new Map(), byTime: Array(BUCKETS_S.length + 1).fill(0), sumS: 0 }
    this.#byOperation.set(operation, answers)
    return answers
  }

  /** In Prometheus each bucket counts those before it, too. */
  #samples(name: string): Sample[] {
    return [...this.#byOperation].flatMap(([operation, { byTime, sumS }]) => {
      let count = 0
      const buckets = byTime.map((more, i) => {
        count += more
        return {
          metricName: `${name}_bucket`,
          labels: { le: BUCKETS_S[i] ?? '+Inf', operation },
          value: count,
        }
      })
      return [
        ...buckets,
        { metricName: `${name}_sum`, labels: { operation }, value: sumS },
        { metricName: `${name}_count`, labels: { operation }, value: count },
      ]
    })
  }
}
