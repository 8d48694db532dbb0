import { fstatSync, openSync } from 'node:fs'

const STDOUT = 1

/**
 * For the end of a process: koffi syncs standard output then, and complains of one that the program has closed. It is given
 * one that can be synced.
 */
export function coverClosedOutput(): void {
  try {
    if (isClosed()) while (openSync('/dev/null', 'r+') < STDOUT);
  } catch {
    // Without a descriptor it complains.
  }
}

function isClosed(): boolean {
  try {
    fstatSync(STDOUT)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EBADF'
  }
}
