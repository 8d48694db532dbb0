/** What Prometheus is told. docs/operations.md says what each one means. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { AnswerMetrics } from './answer-metrics.ts'

const PREFIX = 'fastsockets_named_'
const COMMIT_BUCKETS_S = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]

/** What is looked up when somebody asks. */
export interface Readings {
  readonly names: number
  readonly leases: number
  readonly watchers: number
  readonly connections: number
  readonly revision: number
  readonly isStoreReady: boolean
}

export class Metrics {
  readonly #registry = new Registry()
  readonly #answers: AnswerMetrics
  readonly #refusals: Counter<'problem'>
  readonly #commits: Histogram
  readonly changes: Counter
  readonly expired: Counter
  readonly quarantines: Counter
  readonly storeFailures: Counter
  readonly events: Counter
  readonly behind: Counter

  constructor(read: () => Readings) {
    const registers = [this.#registry]
    const counter = (name: string, help: string) => new Counter({ name: PREFIX + name, help, registers })
    collectDefaultMetrics({ register: this.#registry })
    this.#answers = new AnswerMetrics(this.#registry, PREFIX)
    this.#refusals = new Counter({
      name: `${PREFIX}refusals_total`,
      help: 'Requests that were refused, by problem',
      labelNames: ['problem'],
      registers,
    })
    this.#commits = new Histogram({
      name: `${PREFIX}commit_seconds`,
      help: 'Time in which the store took a batch of changes',
      buckets: COMMIT_BUCKETS_S,
      registers,
    })
    this.changes = counter('changes_total', 'Changes of names')
    this.expired = counter('leases_expired_total', 'Leases that nobody kept alive')
    this.quarantines = counter('store_quarantines_total', 'Damaged stores that were put aside')
    this.storeFailures = counter('store_failures_total', 'Times that the store became unavailable')
    this.events = counter('watch_events_total', 'Events that were sent to watchers')
    this.behind = counter('watchers_behind_total', 'Watchers that were too far behind')
    this.#gauges(read)
  }

  handleAnswer(operation: string, status: number, durationMs: number): void {
    this.#answers.handleAnswer(operation, status, durationMs)
  }

  handleRefusal(problem: string): void {
    this.#refusals.inc({ problem })
  }

  handleCommit(changes: number, durationMs: number): void {
    this.changes.inc(changes)
    this.#commits.observe(durationMs / 1000)
  }

  async print(): Promise<{ text: string; mediaType: string }> {
    return { text: await this.#registry.metrics(), mediaType: this.#registry.contentType }
  }

  #gauges(read: () => Readings): void {
    const gauge = (name: string, help: string, value: (readings: Readings) => number) =>
      new Gauge({
        name: PREFIX + name,
        help,
        registers: [this.#registry],
        collect() {
          this.set(value(read()))
        },
      })
    gauge('names', 'Names that are registered', ({ names }) => names)
    gauge('leases', 'Leases that live', ({ leases }) => leases)
    gauge('watchers', 'Streams of events that are open', ({ watchers }) => watchers)
    gauge('connections', 'Connections that are open', ({ connections }) => connections)
    gauge('revision', 'Number of the last change', ({ revision }) => revision)
    gauge('store_ready', '1 if the store takes changes', ({ isStoreReady }) => (isStoreReady ? 1 : 0))
  }
}
