/** Opens and locks the rendezvous folder, for publishers and sweeps. */
import { closeSync, constants, openSync } from 'node:fs'
import { LOCK_EX, LOCK_NB } from '../posix/constants.ts'
import { type Libc, loadLibc } from '../posix/libc.ts'
import { rendezvousFolder } from './folder.ts'

/** Milliseconds that a publisher waits for the lock: others hold it for less than one. */
const LOCK_TRIES = 10
const LOCK_PAUSE_MS = 1

/**
 * Runs `use` with a path to the folder that leads to the same folder all the time, and with the C library if the folder
 * is locked. The reason if there is no folder. `lockTries`: milliseconds that may pass until it is locked, and one.
 */
export function inFolder<T>(
  use: (at: string, libc: Libc | undefined) => T,
  lockTries = LOCK_TRIES,
): T | string {
  const { libc } = loadLibc()
  let folder: number
  try {
    folder = openSync(rendezvousFolder() as string, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0))
  } catch (error) {
    return `the rendezvous folder cannot be opened: ${(error as Error).message}`
  }
  try {
    return use(
      `/proc/self/fd/${folder}`,
      libc !== undefined && lock(libc, folder, lockTries) ? libc : undefined,
    )
  } catch (error) {
    return `the rendezvous folder cannot be used: ${(error as Error).message}`
  } finally {
    closeSync(folder)
  }
}

function lock(libc: Libc, folder: number, tries: number): boolean {
  for (let left = tries; left > 0; left--) {
    if (libc.flock(folder, LOCK_EX | LOCK_NB) === 0) return true
    if (left > 1) libc.poll(Buffer.alloc(8), 0, LOCK_PAUSE_MS)
  }
  return false
}
