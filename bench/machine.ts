import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import type { Machine } from './result.ts'

/** Above this the figures of a machine are doubtful. */
const QUIET_LOAD_MAX = 0.5

export type MachineBefore = Omit<Machine, 'loadAfter'>

export function describeMachine(): MachineBefore {
  const loadBefore = load()
  return {
    cores: availableParallelism(),
    model: cpus()[0]?.model.trim() ?? 'unknown',
    memoryBytes: totalmem(),
    node: process.version,
    kernel: `${type()} ${release()}`,
    loadBefore,
    isQuiet: loadBefore <= QUIET_LOAD_MAX,
  }
}

export function load(): number {
  return loadavg()[0] ?? 0
}

export function warnUnlessQuiet({ isQuiet, loadBefore }: MachineBefore): void {
  if (isQuiet) return
  process.stderr.write(
    `warning: this machine is not quiet (load ${loadBefore.toFixed(2)}): figures are a hint\n`,
  )
}
