/**
 * Between which of the rounds the true median lies, and how sure that is: by their order alone, whatever they are distributed
 * like. From lowest to highest it is as sure as that not all of them lie to one side: with five rounds 93 %, with fewer less
 * than anybody should rely on. With many, the outermost are left out as long as it stays above 95 %.
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

/** As a title: `93 %`; nothing where there is no interval to speak of. */
export function levelText(rounds: number): string {
  return saysSomething(rounds) ? `${Math.floor(100 * trimOf(rounds).level)} %` : ''
}

/** Whether an interval of so many rounds may be shown, and a verdict follow from it. */
export function saysSomething(rounds: number): boolean {
  return rounds >= ROUNDS_MIN
}

/** How many are left out at each end, and how sure the rest is. */
function trimOf(count: number): { readonly left: number; readonly level: number } {
  // That as many as are left out, and one more, lie on one side: the tails of tossing a coin.
  let toss = 2 ** (1 - count)
  let outside = toss
  for (let left = 0; ; left++) {
    toss *= (count - left) / (left + 1)
    if (outside + toss > 1 - LEVEL) return { left, level: Math.max(0, 1 - outside) }
    outside += toss
  }
}
