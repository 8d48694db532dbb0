/** The ladder of message sizes, and for how long each step is measured. */
import type { Contestant } from './contestants/contestant.ts'
import type { Times } from './half-questions.ts'
import type { SuiteContext } from './suite.ts'

const KIBI = 1024
const MEBI = 1024 * KIBI

export const SMALL = 64
export const LARGE = 64 * KIBI
const LADDER: readonly number[] = [
  1,
  4,
  16,
  SMALL,
  256,
  KIBI,
  4 * KIBI,
  16 * KIBI,
  LARGE,
  256 * KIBI,
  MEBI,
  4 * MEBI,
]
const QUICK_LADDER: readonly number[] = [SMALL, LARGE]

export function ladderOf(context: SuiteContext, contestant?: Contestant): readonly number[] {
  const ladder = context.isQuick ? QUICK_LADDER : LADDER
  return ladder.filter(size => size <= (contestant?.sizeMax ?? Number.POSITIVE_INFINITY))
}

/** How long one figure of one round takes. The warm-up lets the compiler of Node do its work, and is not counted. */
export function timesOf({ isQuick }: SuiteContext): Times {
  return isQuick ? { warmUpMs: 10, ms: 30 } : { warmUpMs: 20, ms: 80 }
}
