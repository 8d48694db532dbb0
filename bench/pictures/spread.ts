/** The spread of the rounds beside a value. */
import type { Result } from '../result.ts'

export const ROUNDS_SPREAD = 'least and greatest of the rounds'
export const RATIO_SPREAD = 'interval of the ratio over the rounds'

interface Spread {
  readonly low?: number
  readonly high?: number
}

/** Empty with one round, which has none. */
export function spreadOf({ rounds }: Result): Spread {
  if (rounds.length < 2) return {}
  return { low: Math.min(...rounds), high: Math.max(...rounds) }
}

/** Of "times as fast". */
export function ratioSpreadOf({ ratio, better, rounds }: Result): Spread {
  if (ratio === undefined || rounds.length < 2) return {}
  return better === 'higher'
    ? { low: ratio.low, high: ratio.high }
    : { low: 1 / ratio.high, high: 1 / ratio.low }
}
