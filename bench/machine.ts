import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Machine } from './result.ts'

/** Limits of a quiet machine: the load average of the last minute, and the cores in use now. */
const QUIET_LOAD_MAX = 0.5
const QUIET_CORES_MAX = 0.25
const SAMPLE_MS = 500

export type MachineBefore = Omit<Machine, 'loadAfter'>

export async function describeMachine(): Promise<MachineBefore> {
  const loadBefore = load()
  const busyCoresBefore = await busyCores()
  return {
    cores: availableParallelism(),
    model: cpus()[0]?.model.trim() ?? 'unknown',
    memoryBytes: totalmem(),
    node: process.version,
    kernel: `${type()} ${release()}`,
    loadBefore,
    ...(busyCoresBefore !== undefined && { busyCoresBefore }),
    isQuiet: loadBefore <= QUIET_LOAD_MAX && (busyCoresBefore ?? 0) <= QUIET_CORES_MAX,
  }
}

export function load(): number {
  return loadavg()[0] ?? 0
}

export function warnUnlessQuiet(machine: MachineBefore): void {
  if (machine.isQuiet) return
  process.stderr.write(`warning: this machine is not quiet (${busyText(machine)}): figures are a hint\n`)
}

/** The load before the run, as text. */
export function busyText({ loadBefore, busyCoresBefore }: MachineBefore): string {
  const cores = busyCoresBefore === undefined ? '' : `, ${busyCoresBefore.toFixed(2)} cores busy`
  return `load ${loadBefore.toFixed(2)}${cores}`
}

/** The cores in use while this process sleeps; undefined if the kernel does not report it. */
async function busyCores(): Promise<number | undefined> {
  const before = coreTicks()
  await delay(SAMPLE_MS)
  const after = coreTicks()
  if (before === undefined || after === undefined) return undefined
  const all = after.all - before.all
  return all > 0 ? (after.count * (after.busy - before.busy)) / all : undefined
}

function coreTicks(): { readonly count: number; readonly all: number; readonly busy: number } | undefined {
  try {
    const text = readFileSync('/proc/stat', 'utf8')
    // user nice system idle iowait irq softirq steal; guests are in the first two.
    const ticks = /^cpu +(.*)$/m.exec(text)?.[1]?.split(' ').slice(0, 8).map(Number) ?? []
    const all = ticks.reduce((sum, one) => sum + one, 0)
    const [, , , idle = 0, ioWait = 0] = ticks
    return { count: text.match(/^cpu\d/gm)?.length ?? 1, all, busy: all - idle - ioWait }
  } catch {
    return undefined
  }
}
