/** Runs suites one after the other, and makes the report. */
import { FaultRandom } from '../nic/fault/fault-random.ts'
import { contestantsOf } from './contestants.ts'
import { describeMachine, load, warnUnlessQuiet } from './machine.ts'
import { ProgressBar } from './progress-bar.ts'
import {
  FAILED,
  REPORT_VERSION,
  type Report,
  type ReportOptions,
  type Result,
  type Skipped,
} from './result.ts'
import { BASELINE } from './rounds.ts'
import type { Suite, SuiteContext } from './suite.ts'

export interface RunOptions extends ReportOptions {
  /** The contestants that the user asked for; all if it is not there. */
  readonly contestants?: ReadonlySet<string>
  readonly command: string
  /**
   * How long all suites together may take; any time if it is not there. Each leaves those that follow their
   * `quickSeconds`.
   */
  readonly secondsMax?: number
}

export interface Run {
  readonly report: Report
  /** One line for each contestant, or suite, that broke down. */
  readonly failures: readonly string[]
}

const COMPLAINT_LENGTH_MAX = 3000

export async function runSuites(suites: readonly Suite[], options: RunOptions): Promise<Run> {
  const { rounds, isQuick, seed, contestants, command, secondsMax = Number.POSITIVE_INFINITY } = options
  const machine = await describeMachine()
  warnUnlessQuiet(machine)
  const startMs = performance.now()
  const startedAt = new Date()
  const results: Result[] = []
  const skipped: Skipped[] = []
  const failures: string[] = []
  for (const [index, suite] of suites.entries()) {
    const later = suites.slice(index + 1).reduce((sum, { quickSeconds }) => sum + quickSeconds, 0)
    // One for each: a suite has its order whatever else is measured.
    const generator = new FaultRandom(seed)
    const bar = new ProgressBar(suite.name)
    const context: SuiteContext = {
      rounds,
      isQuick,
      deadlineMs: startMs + (secondsMax - later) * 1000,
      random: () => generator.word() / 2 ** 32,
      wants: name =>
        contestants === undefined || contestants.has(name) || name === (suite.baseline ?? BASELINE),
      skip: (contestant, reason) => skipped.push({ suite: suite.name, contestant, reason }),
      fail: (contestant, error) => {
        const complaint = complaintOf(error)
        skipped.push({ suite: suite.name, contestant, reason: FAILED + complaint })
        failures.push(`${suite.name}, ${contestant}: ${complaint}`)
      },
      progress: (done, total, what) => bar.show(done, total, what),
    }
    try {
      results.push(...(await suite.run(context)))
    } catch (error) {
      // The other suites go on. None of this one's contestants has results.
      const complaint = complaintOf(error as Error)
      failures.push(`${suite.name}: ${complaint}`)
      for (const contestant of contestantsOf(suite).filter(context.wants)) {
        skipped.push({ suite: suite.name, contestant, reason: FAILED + complaint })
      }
    } finally {
      bar.end()
    }
  }
  const report: Report = {
    version: REPORT_VERSION,
    command,
    startedAt: startedAt.toISOString(),
    seconds: (Date.now() - startedAt.getTime()) / 1000,
    machine: { ...machine, loadAfter: load() },
    options: { rounds, isQuick, seed },
    results,
    skipped,
  }
  return { report, failures }
}

/** Abstract unix names begin with a zero, which terminals and pipes do not like. */
function complaintOf({ message }: Error): string {
  return message.replaceAll('\0', '@').slice(0, COMPLAINT_LENGTH_MAX)
}
