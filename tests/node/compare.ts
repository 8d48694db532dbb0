/** Each test plain, then relinked; what differs is repeated, because tests of Node's fail now and then on their own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Run, runTest } from './run-test.ts'
import type { TestFile } from './test-files.ts'

/** How often a test that fails relinked is run, either way, before something is said about it. */
const TRIES = 3

/**
 * - `same`      passes plain and relinked
 * - `broken`    passes plain, and never relinked
 * - `unsteady`  passes plain, and only sometimes relinked
 * - `useless`   fails plain, or not always passes, or is skipped: says nothing about us
 */
export type Verdict = 'same' | 'broken' | 'unsteady' | 'useless'

export interface Comparison {
  readonly name: string
  readonly verdict: Verdict
  readonly plain: readonly Run[]
  readonly relinked: readonly Run[]
}

export interface CompareOptions {
  readonly timeoutMs: number
  readonly jobCount: number
  readonly onCompared: (comparison: Comparison) => void
}

export async function compareAll(files: readonly TestFile[], options: CompareOptions): Promise<Comparison[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'node-test-'))
  const done: Comparison[] = []
  let runCount = 0
  const run = (file: TestFile, isRelinked: boolean): Promise<Run> =>
    runTest(file, { isRelinked, timeoutMs: options.timeoutMs, scratch: join(scratch, String(runCount++)) })
  const work = async (queue: TestFile[]): Promise<void> => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const comparison = await compare(file, run)
      options.onCompared(comparison)
      done.push(comparison)
    }
  }
  try {
    const parallel = files.filter(file => !file.isSequential)
    await Promise.all(Array.from({ length: options.jobCount }, () => work(parallel)))
    await work(files.filter(file => file.isSequential))
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
  return done.sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function compare(
  file: TestFile,
  run: (file: TestFile, isRelinked: boolean) => Promise<Run>,
): Promise<Comparison> {
  const plain = [await run(file, false)]
  const relinked: Run[] = []
  if (isGood(plain)) relinked.push(await run(file, true))
  if (isGood(plain) && !isGood(relinked)) {
    for (let i = 1; i < TRIES; i++) {
      plain.push(await run(file, false))
      relinked.push(await run(file, true))
    }
  }
  return { name: file.name, verdict: verdictOf(plain, relinked), plain, relinked }
}

function verdictOf(plain: readonly Run[], relinked: readonly Run[]): Verdict {
  if (!isGood(plain)) return 'useless'
  if (isGood(relinked)) return 'same'
  return relinked.some(hasPassed) ? 'unsteady' : 'broken'
}

const hasPassed = (run: Run): boolean => run.outcome === 'passed'
const isGood = (runs: readonly Run[]): boolean => runs.every(hasPassed)
