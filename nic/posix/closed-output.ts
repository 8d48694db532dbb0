import { fstatSync, openSync } from 'node:fs'

const OUTPUTS = [1, 2]

/**
 * For the end of a process: koffi syncs standard output and error then. Of one that the program has closed it complains, and
 * with the other closed it hangs. It is given what can be synced.
 */
export function coverClosedOutput(): void {
  try {
    for (const fd of OUTPUTS) if (isClosed(fd)) while (openSync('/dev/null', 'r+') < fd);
  } catch {
    // Without a descriptor it complains.
  }
}

function isClosed(fd: number): boolean {
  try {
    fstatSync(fd)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EBADF'
  }
}
