/** Runs one test of Node's in a process group of its own, plain or relinked. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { preloadFlag, relinkedNodeOptions } from '../../fastsockets/cli/relink.ts'
import { plainEnvironment } from '../support/child.ts'
import type { TestFile } from './test-files.ts'

/** Kept of what a test prints: its end, where the error is. */
const OUTPUT_MAX = 4000
/** Ports for sequential tests, which use fixed ones. */
const COMMON_PORT = 12346

const WITNESS_FLAG = preloadFlag(new URL('./witness.js', import.meta.url))
/** Of V8 in Node 20: there, nothing can be fast, and the witness cannot be loaded. */
const WITHOUT_SHARED_MEMORY = /^--no-harmony-(atomics|sharedarraybuffer)$/

export type Outcome = 'passed' | 'failed' | 'skipped' | 'timeout'

export interface Run {
  readonly outcome: Outcome
  /** The end of what it printed; empty if it passed. */
  readonly output: string
  /** Connections that were fast, and all that were made; 0 in plain runs. */
  readonly fastCount: number
  readonly connectionCount: number
}

export interface RunOptions {
  readonly isRelinked: boolean
  readonly timeoutMs: number
  /** A folder of this run's own, made and removed here. */
  readonly scratch: string
}

export async function runTest(file: TestFile, options: RunOptions): Promise<Run> {
  const { isRelinked, timeoutMs, scratch } = options
  mkdirSync(scratch, { recursive: true })
  const testimony = join(scratch, 'witness')
  const child = spawn(process.execPath, [...file.flags, file.path], {
    cwd: scratch,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...plainEnvironment(),
      NODE_TEST_DIR: scratch,
      NODE_COMMON_PORT: String(COMMON_PORT),
      TEST_THREAD_ID: '0',
      ...(file.isSequential ? {} : { TEST_PARALLEL: '1' }),
      ...(isRelinked
        ? {
            NODE_OPTIONS: optionsFor(file),
            FASTSOCKETS_TEST_WITNESS: testimony,
            FASTSOCKETS_START: process.env.FASTSOCKETS_START || 'fast',
          }
        : {}),
    },
  })
  let output = ''
  const collect = (text: string): void => {
    output = (output + text).slice(-OUTPUT_MAX)
  }
  child.stdout.setEncoding('utf8').on('data', collect)
  child.stderr.setEncoding('utf8').on('data', collect)
  let isLate = false
  const watchdog = setTimeout(() => {
    isLate = true
    killGroup(child.pid)
  }, timeoutMs)
  const closed = once(child, 'close')
  const [code] = (await once(child, 'exit')) as [number | null]
  clearTimeout(watchdog)
  // What it started and left behind would hold its output open.
  killGroup(child.pid)
  await closed
  const outcome = isLate ? 'timeout' : outcomeOf(code, output)
  const seen = readTestimony(testimony)
  rmSync(scratch, { recursive: true, force: true })
  return { outcome, output: outcome === 'passed' ? '' : output.trim(), ...seen }
}

function optionsFor({ flags }: TestFile): string {
  const isWitnessed = !flags.some(flag => WITHOUT_SHARED_MEMORY.test(flag))
  return isWitnessed ? `${relinkedNodeOptions()} ${WITNESS_FLAG}` : relinkedNodeOptions()
}

function outcomeOf(code: number | null, output: string): Outcome {
  if (code !== 0) return 'failed'
  return /^1\.\.0 # Skipped/m.test(output) ? 'skipped' : 'passed'
}

/** The lines that witness.ts has left, one for each process. */
function readTestimony(path: string): { fastCount: number; connectionCount: number } {
  let fastCount = 0
  let connectionCount = 0
  const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
  for (const line of lines) {
    const [fast = 0, all = 0] = line.split(' ').map(Number)
    fastCount += fast
    connectionCount += all
  }
  return { fastCount, connectionCount }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has no process left.
  }
}
