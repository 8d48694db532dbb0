/** A suite measures one thing with all contestants that can do it. `suites.ts` lists them. */
import type { LatencyHistogram } from './latency-histogram.ts'
import type { Parameters, Result } from './result.ts'

/** A run with `--quick` begins nothing after that. */
export const QUICK_SECONDS = 60

export interface Suite {
  readonly name: string
  /** One line for the help, without a full stop. */
  readonly what: string
  /** The seconds that are kept free for it with `--quick`; all suites together have `QUICK_SECONDS`. */
  readonly quickSeconds: number
  /** Its contestants, if they are not those of `contestants.ts`. */
  readonly contestants?: readonly string[]
  /** With which the others are compared, and which is always measured; `net-tcp` if it is not there. */
  readonly baseline?: string
  /** Optional packages, without which it leaves something out. */
  readonly packages?: readonly string[]
  run(context: SuiteContext): Promise<readonly Result[]>
}

/** What the command gives to a suite. */
export interface SuiteContext {
  /** How often each contestant is measured. */
  readonly rounds: number
  /** Few sizes and short times: for the shape of the report, not for figures. */
  readonly isQuick: boolean
  /** By `performance.now()`: the suite begins nothing later, and says what it left out. */
  readonly deadlineMs: number
  /** Between 0 and 1, from the seed of the run. */
  readonly random: () => number
  /** Whether the user asked for this contestant. If not, leave it out; that needs no `skip`. */
  wants(contestant: string): boolean
  /** Puts on record that the suite leaves a contestant out, and why. */
  skip(contestant: string, reason: string): void
  /** Puts on record that a contestant broke down: it has no results, and the command ends with exit code 1. */
  fail(contestant: string, error: Error): void
  /** Tells the user how far the suite is: `done` of `total` steps, and what is being done now. */
  progress(done: number, total: number, what: string): void
}

/** One contestant in one suite. `measureInRounds` (in `rounds.ts`) calls `measure` once a round, in alternating order. */
export interface Trial {
  readonly contestant: string
  /** May give many samples: one for each set of parameters, or several metrics. */
  measure(): Promise<readonly Sample[]>
}

/** What one contestant did in one round. */
export interface Sample {
  readonly parameters: Parameters
  readonly metric: string
  readonly unit: string
  readonly better: 'lower' | 'higher'
  readonly value: number
  /** In nanoseconds; the report has them in the unit of the sample, which is then `us`. */
  readonly latencies?: LatencyHistogram
}
