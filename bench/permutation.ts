/** A permutation test of trimmed means: compares two sets of rounds without assuming a distribution. */
import { combinations, mean, shuffle } from 'simple-statistics'

/** Up to this many permutations all are tried; of more, this many are drawn at random. */
const DEALS_MAX = 10_000
/** Tolerance for rounding: sums depend on the order of their terms. */
const ROUNDING = 1e-12
/** Weight of the untrimmed means: they decide only between equal trimmed means. */
const TIE_BREAK = 1e-6

/** The p-value: the share of permutations in which `values` lead `others` by at least the observed difference. */
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

/** The mean without the lowest and the highest fifth: one outlier in five rounds changes little. */
function trimmedMean(values: readonly number[]): number {
  const left = Math.floor(values.length / 5)
  return mean(values.toSorted((a, b) => a - b).slice(left, values.length - left))
}

/** Selections of `size` of `count` indices for the first set. */
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
