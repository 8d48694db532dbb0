import type { Result } from './result.ts'

/** The ratio of rates, or that of times turned over: above 1 is faster, whatever was measured. */
export function timesAsFast({ better, ratio }: Pick<Result, 'better' | 'ratio'>): number {
  const median = ratio?.median ?? Number.NaN
  return better === 'higher' ? median : 1 / median
}
