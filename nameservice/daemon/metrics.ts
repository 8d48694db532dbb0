/** Metrics for Prometheus. docs/reference/metrics.md explains each one. */
import { createRequire } from 'node:module'
import type { Metric, Registry } from 'prom-client'
import { Count, type Sample, Tally, Times } from './tallies.ts'

const PREFIX = 'fastsockets_named_'
/** What prom-client prints of the event loop's delay before Node has measured it: Nan, and the largest integer as the least. */
const UNMEASURED = /^nodejs_eventloop_lag_\w+ (?:Nan|9223372036\S*)\n/gm

/** Values that are read when Prometheus asks. */
export interface Readings {
  readonly names: number
  readonly leases: number
  readonly watchers: number
  readonly connections: number
  readonly revision: number
  readonly isStoreReady: boolean
}

/** Counts and times of the requests of one operation. */
interface Answers {
  readonly statuses: Tally<number>
  readonly times: Times
}

export class Metrics {
  readonly changes = new Count()
  readonly expired = new Count()
  readonly quarantines = new Count()
  readonly storeFailures = new Count()
  readonly events = new Count()
  readonly behind = new Count()
  readonly #refusals = new Tally<string>(problem => ({ problem }))
  readonly #commits = new Times()
  readonly #answers = new Map<string, Answers>()
  readonly #read: () => Readings
  #registry: Registry | undefined

  constructor(read: () => Readings) {
    this.#read = read
  }

  handleAnswer(operation: string, status: number, durationMs: number): void {
    const { statuses, times } = this.#answersOf(operation)
    statuses.add(status)
    times.add(durationMs)
  }

  handleRefusal(problem: string): void {
    this.#refusals.add(problem)
  }

  handleCommit(changes: number, durationMs: number): void {
    this.changes.inc(changes)
    this.#commits.add(durationMs)
  }

  async print(): Promise<{ text: string; mediaType: string }> {
    this.#registry ??= this.#makeRegistry()
    const text = (await this.#registry.metrics()).replace(UNMEASURED, '')
    return { text, mediaType: this.#registry.contentType }
  }

  #answersOf(operation: string): Answers {
    const known = this.#answers.get(operation)
    if (known !== undefined) return known
    const answers = { statuses: new Tally<number>(status => ({ operation, status })), times: new Times() }
    this.#answers.set(operation, answers)
    return answers
  }

  #makeRegistry(): Registry {
    const { collectDefaultMetrics, Registry } = loadPromClient()
    const registry = new Registry()
    collectDefaultMetrics({ register: registry })
    const add = (type: 'counter' | 'gauge' | 'histogram') => {
      return (name: string, help: string, read: (fullName: string) => Sample[]) => {
        const fullName = PREFIX + name
        const head = { name: fullName, help, type }
        // The registry calls only `get` and reads only these properties of a metric.
        const metric = { ...head, get: async () => ({ ...head, values: read(fullName) }) }
        registry.registerMetric(metric as unknown as Metric)
      }
    }
    this.#addCounters(add('counter'), add('histogram'))
    this.#addGauges(add('gauge'))
    return registry
  }

  #addCounters(counter: AddMetric, histogram: AddMetric): void {
    const answers = this.#answers
    counter('requests_total', 'Requests that were answered, by operation and status', () =>
      [...answers.values()].flatMap(({ statuses }) => statuses.samples()),
    )
    histogram('request_seconds', 'Time from a request to its answer', name =>
      [...answers].flatMap(([operation, { times }]) => times.samples(name, { operation })),
    )
    counter('refusals_total', 'Requests that were refused, by problem', () => this.#refusals.samples())
    histogram('commit_seconds', 'Time in which the store took a batch of changes', name =>
      this.#commits.samples(name, {}),
    )
    counter('changes_total', 'Changes of names', () => this.changes.samples())
    counter('leases_expired_total', 'Leases that expired because no client kept them alive', () =>
      this.expired.samples(),
    )
    counter('store_quarantines_total', 'Damaged stores that were put aside', () => this.quarantines.samples())
    counter('store_failures_total', 'Times that the store became unavailable', () =>
      this.storeFailures.samples(),
    )
    counter('watch_events_total', 'Events that were sent to watchers', () => this.events.samples())
    counter('watchers_behind_total', 'Watchers that were too far behind', () => this.behind.samples())
  }

  #addGauges(add: AddMetric): void {
    const gauge = (name: string, help: string, value: (readings: Readings) => number) =>
      add(name, help, () => [{ labels: {}, value: value(this.#read()) }])
    gauge('names', 'Names that are registered', ({ names }) => names)
    gauge('leases', 'Leases that live', ({ leases }) => leases)
    gauge('watchers', 'Streams of events that are open', ({ watchers }) => watchers)
    gauge('connections', 'Connections that are open', ({ connections }) => connections)
    gauge('revision', 'Number of the last change', ({ revision }) => revision)
    gauge('store_ready', '1 if the store takes changes', ({ isStoreReady }) => (isStoreReady ? 1 : 0))
  }
}

type AddMetric = (name: string, help: string, read: (fullName: string) => Sample[]) => void

/** Loaded on first use: it takes a tenth of the time of a start. */
function loadPromClient(): typeof import('prom-client') {
  return createRequire(import.meta.url)('prom-client')
}
