/** Measures contestants in rounds, each once a round in alternating order, and makes results with ratios. */
import { median, shuffle } from 'simple-statistics'
import { intervalOf } from './interval.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import type { Parameters, Ratio, Result } from './result.ts'
import type { Sample, SuiteContext, Trial } from './suite.ts'

/** The base of ratios, unless the suite has another one. */
export const BASELINE = 'net-tcp'
const NO_TIME = '--quick has no time left for it; with --rounds 1 it takes what it needs'

/**
 * Results in the order of `trials`. A trial that throws, or measures what is no positive number, is on record as
 * failed and is left out from then on; one for which no time is left, too. A parameter set that some round lacks is
 * left out too.
 */
export async function measureInRounds(
  context: SuiteContext,
  suite: string,
  trials: readonly Trial[],
  baseline = BASELINE,
): Promise<Result[]> {
  const outcomes = new Map(trials.map(trial => [trial, new Outcome(suite, trial.contestant)]))
  const stepCount = trials.length * context.rounds
  let step = 0
  for (let round = 0; round < context.rounds; round++) {
    for (const trial of shuffle([...trials], context.random)) {
      context.progress(step++, stepCount, trial.contestant)
      const outcome = outcomes.get(trial)
      if (outcome === undefined) continue
      if (performance.now() > context.deadlineMs) {
        outcomes.delete(trial)
        context.skip(trial.contestant, NO_TIME)
        continue
      }
      try {
        outcome.add(await trial.measure())
      } catch (error) {
        outcomes.delete(trial)
        context.fail(trial.contestant, error as Error)
      }
    }
  }
  context.progress(stepCount, stepCount, '')
  const results = [...outcomes.values()].flatMap(outcome => outcome.results(context.rounds))
  return results.map(result => withRatio(result, results, baseline))
}

/** The samples of one trial. */
class Outcome {
  readonly #suite: string
  readonly #contestant: string
  readonly #series = new Map<string, { sample: Sample; values: number[]; latencies: LatencyHistogram }>()

  constructor(suite: string, contestant: string) {
    this.#suite = suite
    this.#contestant = contestant
  }

  add(samples: readonly Sample[]): void {
    for (const sample of samples) {
      const key = JSON.stringify([sample.metric, sample.parameters])
      if (!(sample.value > 0 && Number.isFinite(sample.value))) {
        throw new Error(`measured ${sample.value} ${sample.unit} for ${key}, which cannot be`)
      }
      let series = this.#series.get(key)
      if (series === undefined) {
        series = { sample, values: [], latencies: new LatencyHistogram() }
        this.#series.set(key, series)
      }
      series.values.push(sample.value)
      if (sample.latencies !== undefined) series.latencies.merge(sample.latencies)
    }
  }

  results(rounds: number): Result[] {
    const complete = [...this.#series.values()].filter(series => series.values.length === rounds)
    return complete.map(({ sample: { parameters, metric, unit, better }, values, latencies }) => ({
      suite: this.#suite,
      contestant: this.#contestant,
      parameters,
      metric,
      unit,
      better,
      rounds: values,
      median: median(values),
      ...(latencies.count === 0 ? {} : { latencies: latencies.percentiles() }),
    }))
  }
}

function withRatio(result: Result, all: readonly Result[], baseline: string): Result {
  if (result.contestant === baseline) return result
  const base = all.find(other => other.contestant === baseline && isSameMeasurement(other, result))
  if (base === undefined) return result
  return { ...result, ratio: ratioOf(baseline, ratiosOfRounds(result, base)) }
}

export function isSameMeasurement(a: Result, b: Result): boolean {
  return a.suite === b.suite && a.metric === b.metric && areSame(a.parameters, b.parameters)
}

function areSame(a: Parameters, b: Parameters): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every(name => a[name] === b[name])
}

/** The ratio of two results in each round. */
export function ratiosOfRounds(result: Result, base: Result): number[] {
  return result.rounds.flatMap((value, round) => {
    const other = base.rounds[round]
    return other === undefined ? [] : [value / other]
  })
}

function ratioOf(to: string, ratios: readonly number[]): Ratio {
  return { to, median: median([...ratios]), ...intervalOf(ratios) }
}
