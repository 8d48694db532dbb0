/** How this thread and the others share the cores. */
import { closeSync, openSync, readSync } from 'node:fs'
import { loadLibc } from './libc.ts'

/** proc(5): nanoseconds on a core, nanoseconds waiting for one while runnable, time slices. */
const SCHEDSTAT = '/proc/thread-self/schedstat'
const TEXT_MAX = 96
/** Anything else, as a process without descriptors, may be over soon. */
const NEVER_CODES = new Set<string | undefined>(['ENOENT', 'EACCES', 'EPERM'])

/** How long this thread has had a core, and been without one though it was runnable, since it began. */
export interface CoreTimes {
  readonly ranMs: number
  readonly waitedMs: number
}

const text = Buffer.allocUnsafe(TEXT_MAX)

/** Lets another runnable thread have this core, if one waits for it (sched_yield(2)); returns at once otherwise. */
export function yieldCore(): void {
  loadLibc().libc?.sched_yield()
}

/** `never` where the system does not say; undefined if it cannot be asked now. It takes about 10 us. */
export function readCoreTimes(): CoreTimes | 'never' | undefined {
  let file = -1
  try {
    file = openSync(SCHEDSTAT, 'r')
    const length = readSync(file, text, 0, TEXT_MAX, 0)
    const [ranNs, waitedNs] = text.toString('latin1', 0, length).split(' ').map(Number)
    if (ranNs === undefined || waitedNs === undefined) return 'never'
    return { ranMs: ranNs / 1e6, waitedMs: waitedNs / 1e6 }
  } catch (error) {
    return NEVER_CODES.has((error as NodeJS.ErrnoException).code) ? 'never' : undefined
  } finally {
    if (file !== -1) closeSync(file)
  }
}
