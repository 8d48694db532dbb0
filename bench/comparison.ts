/**
 * Compares two reports by their ratios to plain TCP, round by round, and tells a loss from noise. Absolute times are not
 * compared: they are a matter of the machine and of the hour.
 *
 * A loss is real if the new rounds would still be worse had the base been worse by `TOLERANCE` itself; a one-sided
 * permutation test over the rounds says how likely chance alone gives that. So drift within the tolerance never alarms.
 */
import { median, permutationTest } from 'simple-statistics'
import type { Report, Result } from './result.ts'
import { BASELINE, isSameMeasurement, ratiosOfRounds } from './rounds.ts'

/** A contestant may become worse by this much. */
export const TOLERANCE = 0.1
/** Chance alone says "lost" about one result in as many, at the very edge of the tolerance. */
const LEVEL = 0.01
/** With fewer in both reports, no difference can be told from chance at that level. */
export const ROUNDS_MIN = 5
const PERMUTATIONS = 10_000

export type Verdict = 'lost' | 'gained' | 'same'

export interface Compared {
  readonly result: Result
  /** Medians of the ratios to TCP. */
  readonly before: number
  readonly after: number
  /** How much worse the new ratio is, as a factor: 1.2 is 20 % worse, 0.5 twice as good. */
  readonly worse: number
  readonly verdict: Verdict
}

export interface Comparison {
  readonly compared: readonly Compared[]
  /** Results of the base which the new report lacks. */
  readonly missing: readonly Result[]
}

export function compareReports(base: Report, next: Report, random: () => number): Comparison {
  const compared: Compared[] = []
  const missing: Result[] = []
  for (const old of base.results) {
    // What a technique is worth is compared with all of them together: more is no loss, and less no gain.
    if (old.ratio?.to !== BASELINE) continue
    const oldRatios = ratiosToBaseline(base, old)
    if (oldRatios === undefined) continue
    const result = next.results.find(
      other => other.contestant === old.contestant && isSameMeasurement(other, old),
    )
    const ratios = result === undefined ? undefined : ratiosToBaseline(next, result)
    if (result === undefined || ratios === undefined) missing.push(old)
    else compared.push(compareRounds(result, oldRatios, ratios, random))
  }
  return { compared, missing }
}

/** Undefined for the baseline itself, and where it was not measured. */
function ratiosToBaseline(report: Report, result: Result): number[] | undefined {
  const to = result.ratio?.to
  const baseline = report.results.find(other => other.contestant === to && isSameMeasurement(other, result))
  return to === undefined || baseline === undefined ? undefined : ratiosOfRounds(result, baseline)
}

function compareRounds(
  result: Result,
  oldRatios: readonly number[],
  newRatios: readonly number[],
  random: () => number,
): Compared {
  // Logarithms of how bad it is: a factor becomes a distance, the same in both directions.
  const sign = result.better === 'lower' ? 1 : -1
  const before = oldRatios.map(ratio => sign * Math.log(ratio))
  const after = newRatios.map(ratio => sign * Math.log(ratio))
  const margin = Math.log(1 + TOLERANCE)
  const isLost = isGreater(
    after,
    before.map(value => value + margin),
    random,
  )
  const isGained =
    !isLost &&
    isGreater(
      before,
      after.map(value => value + margin),
      random,
    )
  return {
    result,
    before: median([...oldRatios]),
    after: median([...newRatios]),
    worse: Math.exp(median(after) - median(before)),
    verdict: isLost ? 'lost' : isGained ? 'gained' : 'same',
  }
}

function isGreater(values: readonly number[], others: readonly number[], random: () => number): boolean {
  // The test takes a second for all results of a report; most of them need none.
  if (median([...values]) <= median([...others])) return false
  return permutationTest([...values], [...others], 'greater', PERMUTATIONS, random) < LEVEL
}
