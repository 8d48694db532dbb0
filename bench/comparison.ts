/**
 * Compares two reports by their ratios to plain TCP, round by round, and tells a loss from noise. Absolute times are not
 * compared: they are a matter of the machine and of the hour.
 *
 * A loss is real if the new rounds would still be worse had the base been worse by `TOLERANCE` itself; a one-sided
 * permutation test over the rounds says how likely chance alone gives that. So drift within the tolerance never alarms.
 * Where even a loss of half would not be found, because the rounds scatter so much, nothing can be told.
 */
import { median } from 'simple-statistics'
import { chanceOfLead } from './permutation.ts'
import type { Report, Result } from './result.ts'
import { BASELINE, isSameMeasurement, ratiosOfRounds } from './rounds.ts'

/** A contestant may become worse by this much. */
export const TOLERANCE = 0.1
/** Chance alone says "lost" about one result in as many, at the very edge of the tolerance. */
const LEVEL = 0.01
/** With fewer in both reports, no difference can be told from chance at that level. */
export const ROUNDS_MIN = 5
/** As a factor: a loss that must be seen, or the rounds say nothing. */
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
  return {
    result,
    before: median([...oldRatios]),
    after: median([...newRatios]),
    verdict: verdictOf(before, after, { worse: changeBy(sign, 1), better: changeBy(sign, -1) }, random),
  }
}

/** How far a ratio moves that grows, or shrinks, by the tolerance: 10 % of a rate is 10 % of the rate. */
function changeBy(sign: 1 | -1, direction: 1 | -1): number {
  return Math.abs(Math.log(1 + sign * direction * TOLERANCE))
}

/** Of rounds as logarithms of how bad they are; `margins` are how much worse or better they may become. */
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
