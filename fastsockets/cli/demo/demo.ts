/** The main job: unmodified programs from npm, plain and relinked in turn, on the same file; every byte is compared. */
import type { ListrTask } from 'listr2'
import { runTasks } from '../progress.ts'
import { runFtp, runHttp } from './demo-run.ts'
import { type Comparison, compare, JOBS, type Measurement } from './measurement.ts'
import { RUN_MODES, type RunMode } from './run-mode.ts'
import { MEGABYTE, type Workspace } from './workspace.ts'

const ROUNDS_MAX = 3
/** A round that would probably end later than this does not begin. */
const TIME_LIMIT_MS = 50_000

export interface DemoResult {
  readonly size: number
  readonly sha256: string
  readonly rounds: number
  readonly seconds: number
  readonly comparisons: readonly Comparison[]
}

export async function runDemo(workspace: Workspace, size: number): Promise<DemoResult> {
  const startedAt = performance.now()
  const elapsedMs = (): number => performance.now() - startedAt
  const measurements: Measurement[] = []
  const roundsMs: number[] = []

  const makeFile: ListrTask = {
    title: `a file of ${size / MEGABYTE} MiB in ${workspace.folder}`,
    task: (_context, task) =>
      workspace.makeSource(size, written => {
        if (process.stderr.isTTY) task.output = `${Math.floor((written / size) * 100)} %`
      }),
  }
  const rounds = Array.from({ length: ROUNDS_MAX }, (_, index): ListrTask => {
    return {
      title: `round ${index + 1} of ${ROUNDS_MAX}`,
      skip: () => {
        const isTooLate = elapsedMs() + Math.max(0, ...roundsMs) > TIME_LIMIT_MS
        return isTooLate && roundsMs.length > 0 && `round ${index + 1}: the time is up`
      },
      task: async (_context, task) => {
        const roundStartedAt = elapsedMs()
        return task.newListr([
          ...runsOfRound(index, workspace, measurements),
          { task: () => void roundsMs.push(elapsedMs() - roundStartedAt) },
        ])
      },
    }
  })
  await runTasks([makeFile, ...rounds])

  return {
    size,
    sha256: workspace.source.sha256,
    rounds: roundsMs.length,
    seconds: elapsedMs() / 1000,
    comparisons: compare(measurements),
  }
}

/** Plain and relinked alternate, and so does their order. */
function runsOfRound(index: number, workspace: Workspace, measurements: Measurement[]): ListrTask[] {
  const modes = index % 2 === 0 ? RUN_MODES : RUN_MODES.toReversed()
  const kinds = [
    { name: 'FTP up and down', run: runFtp },
    { name: 'HTTP requests and file', run: runHttp },
  ]
  return kinds.flatMap(({ name, run }) =>
    modes.map((mode: RunMode): ListrTask => {
      return {
        title: `${name}, ${mode}`,
        task: async (_context, task) => {
          const results = await run(mode, workspace)
          measurements.push(...results)
          task.title = `${name}, ${mode}: ${results.map(describe).join(', ')}`
        },
      }
    }),
  )
}

function describe({ job, wire, megabytesPerSecond, roundTripP50Us }: Measurement): string {
  const figure =
    megabytesPerSecond === undefined
      ? `${roundTripP50Us?.toFixed(0)} us`
      : `${megabytesPerSecond.toFixed(0)} MB/s`
  return `${JOBS[job]} ${figure} (${wire})`
}
