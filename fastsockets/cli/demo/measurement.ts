/** What the demo measures, and the median over its rounds. */
import { RUN_MODES, type RunMode } from './run-mode.ts'

export const JOBS = {
  ftpUpload: 'FTP upload',
  ftpDownload: 'FTP download',
  httpFile: 'HTTP file',
  httpRequests: 'HTTP requests',
} as const

export type Job = keyof typeof JOBS

/** A transfer has a rate, requests have round trips. */
export interface Figures {
  readonly megabytesPerSecond?: number
  readonly roundTripP50Us?: number
  readonly roundTripP99Us?: number
}

export interface Outcome extends Figures {
  readonly wire: string
}

/** One job, once, in one mode. */
export interface Measurement extends Outcome {
  readonly job: Job
  readonly mode: RunMode
}

export interface Comparison {
  readonly job: Job
  readonly plain: Outcome
  readonly relinked: Outcome
  /** Rate against rate, or median round trip against median round trip. */
  readonly timesFaster: number
}

/** One comparison for each job; each figure is the median of its rounds. */
export function compare(measurements: readonly Measurement[]): Comparison[] {
  return (Object.keys(JOBS) as Job[]).map(job => {
    const [plain, relinked] = RUN_MODES.map(mode =>
      middle(measurements.filter(measurement => measurement.job === job && measurement.mode === mode)),
    ) as [Outcome, Outcome]
    return { job, plain, relinked, timesFaster: timesFaster(plain, relinked) }
  })
}

function middle(rounds: readonly Measurement[]): Outcome {
  const [first] = rounds
  if (first === undefined) throw new Error('there is nothing to compare')
  const keys = ['megabytesPerSecond', 'roundTripP50Us', 'roundTripP99Us'] as const
  const medians = keys.flatMap(key => {
    const values = rounds.flatMap(round => round[key] ?? [])
    return values.length === 0 ? [] : [[key, median(values)]]
  })
  return { wire: first.wire, ...(Object.fromEntries(medians) as Figures) }
}

function timesFaster(plain: Figures, relinked: Figures): number {
  if (plain.megabytesPerSecond !== undefined && relinked.megabytesPerSecond !== undefined) {
    return relinked.megabytesPerSecond / plain.megabytesPerSecond
  }
  return (plain.roundTripP50Us ?? Number.NaN) / (relinked.roundTripP50Us ?? Number.NaN)
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = sorted.length / 2
  const upper = sorted[Math.floor(half)] ?? Number.NaN
  return Number.isInteger(half) ? ((sorted[half - 1] ?? Number.NaN) + upper) / 2 : upper
}
