import { fstatSync, openSync } from 'node:fs'

const OUTPUTS = [1, 2]

/**
 * Opens /dev/null in place of a standard output or error that the program has closed. koffi syncs both when the process
 * ends: with one of them closed koffi prints a complaint, with the other closed the process hangs.
 */
export function coverClosedOutput(): void {
  try {
    for (const fd of OUTPUTS) if (isClosed(fd)) while (openSync('/dev/null', 'r+') < fd);
  } catch {
    // No descriptor is left: koffi prints its complaint.
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
