/** How long this thread has had a core, and how long it has waited for one. */
import { closeSync, openSync, readSync } from 'node:fs'

/** proc(5). Three numbers: nanoseconds on a core, nanoseconds runnable without a core, time slices. */
const SCHEDSTAT = '/proc/thread-self/schedstat'
const TEXT_MAX = 96
/** Errors that stay. Any other, such as EMFILE, may be gone at the next call. */
const NEVER_CODES = new Set<string | undefined>(['ENOENT', 'EACCES', 'EPERM'])

/** Milliseconds since the thread began: on a core, and runnable without a core. */
export interface CoreTimes {
  readonly ranMs: number
  readonly waitedMs: number
}

const text = Buffer.allocUnsafe(TEXT_MAX)

/** `never` if this system does not report the times; undefined if only this call failed. Takes about 10 us. */
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
