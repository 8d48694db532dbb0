/** Unmodified programs from npm, plain and relinked in turn. */
import { RUN_MODES, type RunMode } from '../../fastsockets/cli/demo/run-mode.ts'
import { whyNoRoom } from '../apps/app-folder.ts'
import { runMatrix, runPair } from '../apps/app-runs.ts'
import { ftpFileSize } from '../apps/programs/ftp-file.ts'
import type { Figure } from '../apps/programs/program.ts'
import { LatencyHistogram } from '../latency-histogram.ts'
import { missingPackage } from '../missing-package.ts'
import type { Result } from '../result.ts'
import { measureInRounds } from '../rounds.ts'
import type { Sample, Suite, SuiteContext, Trial } from '../suite.ts'

const SUITE = 'apps'
const CONTESTANT_OF_MODE: Readonly<Record<RunMode, string>> = { plain: 'net-tcp', relinked: 'net-relinked' }
const RAW = 'raw'
const MATRIX = 'matrix'
const MS = 600
const QUICK_MS = 20
/** For quick jobs, which may disturb each other: their figures are not used. */
const QUICK_JOBS_AT_A_TIME = 2
const MATRIX_SIZE = 512
const QUICK_MATRIX_SIZE = 64

/** The apps: each is a program of programs/, with the packages that the program needs. */
const APPS: Readonly<Record<string, readonly string[]>> = {
  ftp: ['ftp-srv', 'basic-ftp'],
  http: ['autocannon'],
  http2: [],
  tls: [],
  express: ['express', 'autocannon'],
  ws: ['ws'],
  'socket.io': ['socket.io', 'socket.io-client'],
  grpc: ['@grpc/grpc-js'],
}

/** The names of all apps, installed or not. */
export const APP_NAMES: readonly string[] = [...Object.keys(APPS), MATRIX]

export const apps: Suite = {
  name: SUITE,
  what: 'ftp, http, http2, tls, express, ws, socket.io, gRPC and a matrix product over 4 workers, plain and relinked',
  quickSeconds: 8,
  contestants: [...Object.values(CONTESTANT_OF_MODE), RAW],
  packages: Object.values(APPS).flat(),
  async run(context) {
    const jobs = [
      ...(await possibleApps(context)).map(app => ({ app, trials: pairTrials(app, context) })),
      { app: MATRIX, trials: matrixTrials(context) },
    ]
    const results: Result[][] = jobs.map(() => [])
    let next = 0
    const work = async (): Promise<void> => {
      for (let index = next++; index < jobs.length; index = next++) {
        const { app, trials } = jobs[index] as Job
        results[index] = await measureInRounds(partOf(context, app, index, jobs.length), SUITE, trials)
      }
    }
    await Promise.all(Array.from({ length: context.isQuick ? QUICK_JOBS_AT_A_TIME : 1 }, work))
    return results.flat()
  },
}

interface Job {
  readonly app: string
  readonly trials: readonly Trial[]
}

async function possibleApps(context: SuiteContext): Promise<string[]> {
  const possible: string[] = []
  for (const [app, packages] of Object.entries(APPS)) {
    const reason =
      (await missingPackage(...packages)) ??
      (app === 'ftp' ? whyNoRoom(ftpFileSize(msOf(context))) : undefined)
    if (reason === undefined) possible.push(app)
    else for (const mode of wantedModes(context)) context.skip(CONTESTANT_OF_MODE[mode], `${app}: ${reason}`)
  }
  return possible
}

function msOf({ isQuick }: SuiteContext): number {
  return isQuick ? QUICK_MS : MS
}

function pairTrials(app: string, context: SuiteContext): Trial[] {
  return wantedModes(context).map(mode => ({
    contestant: CONTESTANT_OF_MODE[mode],
    measure: async () => (await runPair(app, mode, msOf(context))).map(figure => sampleOf(app, figure)),
  }))
}

function matrixTrials(context: SuiteContext): Trial[] {
  const n = context.isQuick ? QUICK_MATRIX_SIZE : MATRIX_SIZE
  const trial = (contestant: string, kind: 'net' | 'raw', mode: RunMode): Trial => ({
    contestant,
    measure: async () => (await runMatrix(kind, mode, n)).map(figure => sampleOf(MATRIX, figure)),
  })
  const trials = wantedModes(context).map(mode => trial(CONTESTANT_OF_MODE[mode], 'net', mode))
  return context.wants(RAW) ? [...trials, trial(RAW, 'raw', 'plain')] : trials
}

function wantedModes(context: SuiteContext): RunMode[] {
  return RUN_MODES.filter(mode => context.wants(CONTESTANT_OF_MODE[mode]))
}

function sampleOf(app: string, { part, metric, unit, value, latencies }: Figure): Sample {
  return {
    parameters: { app, part },
    metric,
    unit,
    better: metric === 'rate' ? 'higher' : 'lower',
    value,
    ...(latencies && { latencies: LatencyHistogram.decode(latencies) }),
  }
}

/** The context of one of `count` jobs: its progress is a share of the suite's, and what it leaves out has its name. */
function partOf(context: SuiteContext, app: string, index: number, count: number): SuiteContext {
  return {
    rounds: context.rounds,
    isQuick: context.isQuick,
    deadlineMs: context.deadlineMs,
    random: context.random,
    wants: contestant => context.wants(contestant),
    skip: (contestant, reason) => context.skip(contestant, `${app}: ${reason}`),
    fail: (contestant, error) => context.fail(contestant, new Error(`${app}: ${error.message}`)),
    progress: (done, total, what) => context.progress(index * total + done, count * total, what),
  }
}
