/** A folder in memory for the files of one run: a disk would be the bottleneck of every transfer. */
import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { quantity } from '../quantity.ts'

const PLACE = process.platform === 'linux' ? '/dev/shm' : tmpdir()
/** Reserve for other files, and for a file that is written while another is being removed. */
const SPARE_BYTES = 16 * 1024 * 1024

/** Why files of so many bytes can not lie there, in one line. */
export function whyNoRoom(bytes: number): string | undefined {
  const wanted = bytes + SPARE_BYTES
  try {
    const { bavail, bsize } = statfsSync(PLACE)
    const free = bavail * bsize
    if (free < wanted)
      return `${PLACE} has ${quantity(free, 'B')} to spare, and it needs ${quantity(wanted, 'B')}`
    const memory = process.availableMemory?.() ?? Number.POSITIVE_INFINITY
    if (memory >= wanted) return undefined
    return `there are ${quantity(memory, 'B')} of memory to spare, and it needs ${quantity(wanted, 'B')}`
  } catch (error) {
    return (error as Error).message
  }
}

/** Runs `use` with a new folder, and removes the folder afterwards, also if this process is interrupted. */
export async function withFolder<T>(
  place: 'memory' | 'disk',
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const parent = place === 'memory' ? PLACE : tmpdir()
  const folder = mkdtempSync(join(parent, `fastsockets-bench-${process.pid}-`))
  // A program that was killed a moment ago may still make a file: try again, then.
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  process.once('exit', remove)
  try {
    return await use(folder)
  } finally {
    process.off('exit', remove)
    remove()
  }
}
