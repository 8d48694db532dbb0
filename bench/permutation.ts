/** Whether some rounds are ahead of others by more than chance: a permutation test of trimmed means. No distribution is assumed. */
import { combinations, mean, shuffle } from 'simple-statistics'

/** If there are no more ways to deal the rounds, all are tried; else so many are drawn. */
const DEALS_MAX = 10_000
/** The same numbers added in another order. */
const ROUNDING = 1e-12
/** What the means of all rounds count for beside those of the middle: they decide between equals. */
const TIE_BREAK = 1e-6

/** The share of all ways to deal the rounds to both sides in which the first is ahead by as much as it is, or by more. */
export function chanceOfLead(
  values: readonly number[],
  others: readonly number[],
  random: () => number,
): number {
  const all = [...values, ...others]
  const found = leadOf(values, others) - ROUNDING
  const deals = dealsOf(all.length, values.length, random)
  const asFar = deals.filter(deal => {
    const chosen = new Set(deal)
    const isChosen = (_value: number, index: number): boolean => chosen.has(index)
    return (
      leadOf(
        all.filter(isChosen),
        all.filter((value, index) => !isChosen(value, index)),
      ) >= found
    )
  })
  return asFar.length / deals.length
}

function leadOf(values: readonly number[], others: readonly number[]): number {
  return trimmedMean(values) - trimmedMean(others) + TIE_BREAK * (mean([...values]) - mean([...others]))
}

/** Without the lowest fifth and the highest: one wild round of five, on either side, changes little. */
function trimmedMean(values: readonly number[]): number {
  const left = Math.floor(values.length / 5)
  return mean(values.toSorted((a, b) => a - b).slice(left, values.length - left))
}

/** Which `size` of `count` come to the first side. */
function dealsOf(count: number, size: number, random: () => number): number[][] {
  const indices = Array.from({ length: count }, (_, index) => index)
  if (dealCount(count, size) <= DEALS_MAX) return combinations(indices, size)
  return Array.from({ length: DEALS_MAX }, () => shuffle(indices, random).slice(0, size))
}

function dealCount(count: number, size: number): number {
  let ways = 1
  for (let i = 1; i <= size; i++) ways *= (count - size + i) / i
  return Math.round(ways)
}
