/**
 * The confidence interval of the median, from order statistics: valid for any distribution of the rounds. The
 * interval from the lowest to the highest round misses the true median only if all rounds lie on one side of it. With
 * five rounds that is a level of 93 %; fewer rounds are not enough. With more rounds, the outermost are left out
 * while the level stays above 95 %.
 */
const ROUNDS_MIN = 5
const LEVEL = 0.95

export interface Interval {
  readonly low: number
  readonly high: number
}

export function intervalOf(values: readonly number[]): Interval {
  const { left } = trimOf(values.length)
  const sorted = values.toSorted((a, b) => a - b)
  return { low: sorted[left] ?? Number.NaN, high: sorted[values.length - 1 - left] ?? Number.NaN }
}

/** The level as a title, such as `93 %`; empty if there are too few rounds for an interval. */
export function levelText(rounds: number): string {
  return saysSomething(rounds) ? `${Math.floor(100 * trimOf(rounds).level)} %` : ''
}

/** True if there are enough rounds to show an interval and to base a verdict on it. */
export function saysSomething(rounds: number): boolean {
  return rounds >= ROUNDS_MIN
}

/** The number of rounds left out at each end, and the confidence level of the remaining interval. */
function trimOf(count: number): { readonly left: number; readonly level: number } {
  // `outside`: both tails of the binomial distribution with p = 1/2.
  let toss = 2 ** (1 - count)
  let outside = toss
  for (let left = 0; ; left++) {
    toss *= (count - left) / (left + 1)
    if (outside + toss > 1 - LEVEL) return { left, level: Math.max(0, 1 - outside) }
    outside += toss
  }
}
