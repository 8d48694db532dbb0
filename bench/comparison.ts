/**
 * Compares two reports by their ratios to plain TCP, round by round, and separates losses from noise. Absolute times
 * are not compared, because they depend on the machine and its load.
 *
 * The verdict is `lost` if the new rounds are worse than the base rounds made worse by `TOLERANCE`, at the level of a
 * one-sided permutation test. So a drift within the tolerance is never `lost`. The verdict is `unclear` if the rounds
 * scatter so much that the test would not find a loss by the factor `GREAT_LOSS`.
 */
import { median } from 'simple-statistics'
import { chanceOfLead } from './permutation.ts'
import type { Report, Result } from './result.ts'
import { BASELINE, isSameMeasurement, ratiosOfRounds } from './rounds.ts'

/** A contestant may become worse by this much. */
export const TOLERANCE = 0.1
/** The test's significance level: the probability of a false `lost` for a result at the edge of the tolerance. */
const LEVEL = 0.01
/** With fewer rounds in both reports no difference reaches that level. */
export const ROUNDS_MIN = 5
/** A loss by this factor must be found, or the verdict is `unclear`. */
const GREAT_LOSS = 2

export type Verdict = 'lost' | 'gained' | 'same' | 'unclear'

export interface Compared {
  readonly result: Result
  /** Medians of the ratios to TCP. */
  readonly before: number
  readonly after: number
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
    // Results of `ablation` have another base: a change of a technique's share is neither a loss nor a gain.
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

/** Undefined for the baseline itself, and if the baseline was not measured. */
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
  // Logarithms turn factors into distances that are equal in both directions; greater is worse.
  const sign = result.better === 'lower' ? 1 : -1
  const before = oldRatios.map(ratio => sign * Math.log(ratio))
  const after = newRatios.map(ratio => sign * Math.log(ratio))
  return {
    result,
    before: median([...oldRatios]),
    after: median([...newRatios]),
    verdict: verdictOf(before, after, { worse: changeBy(sign, 1), better: changeBy(sign, -1) }, random),
  }
}

/** The distance on the logarithmic scale by which a ratio moves that grows or shrinks by the tolerance. */
function changeBy(sign: 1 | -1, direction: 1 | -1): number {
  return Math.abs(Math.log(1 + sign * direction * TOLERANCE))
}

/** `before` and `after` are logarithms, greater is worse; `margins` are the tolerated distances in both directions. */
function verdictOf(
  before: readonly number[],
  after: readonly number[],
  margins: { readonly worse: number; readonly better: number },
  random: () => number,
): Verdict {
  const allowed = before.map(value => value + margins.worse)
  if (isGreater(after, allowed, random)) return 'lost'
  const enough = after.map(value => value + margins.better)
  if (isGreater(before, enough, random)) return 'gained'
  const shift = median([...before]) - median([...after]) + Math.log(GREAT_LOSS)
  const afterGreatLoss = after.map(value => value + shift)
  return isGreater(afterGreatLoss, allowed, random) ? 'same' : 'unclear'
}

function isGreater(values: readonly number[], others: readonly number[], random: () => number): boolean {
  if (median([...values]) <= median([...others])) return false
  return chanceOfLead(values, others, random) < LEVEL
}
