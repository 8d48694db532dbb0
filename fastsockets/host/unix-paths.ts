/**
 * Listeners on unix paths. What stands for a hashed port there is an abstract unix name, made from what the kernel knows
 * the socket by: device and inode of the file, whatever path leads to it, or the abstract name itself. Nothing is left in
 * the file system, and a listener in another network namespace is not found, so that the kernel serves its clients.
 */
import { createHash } from 'node:crypto'
import { accessSync, constants, statSync } from 'node:fs'

/** The address families of a connection; the numbers are the wire's. */
export const UNIX = 1
export type Family = 4 | 6 | typeof UNIX

const FILE = 'file-'

/** As long as an abstract name can be: Node 20 fills up shorter ones with zeros, and later versions do not. */
const SHADOW_NAME_SIZE = 108

/** Whether it is the key of a socket file, which has an owner and a mode, and not of an abstract name. */
export function isFileKey(key: string): boolean {
  return key.startsWith(FILE)
}

/** What names the listener at `path` among processes of this host; undefined if no socket is there to write to. */
export function unixKey(path: string): string | undefined {
  if (path.startsWith('\0')) return `name-${createHash('sha256').update(path).digest('hex').slice(0, 40)}`
  try {
    // As connect(2) asks for it.
    accessSync(path, constants.W_OK)
    const { dev, ino } = statSync(path, { bigint: true })
    return `${FILE}${dev.toString(36)}-${ino.toString(36)}`
  } catch {
    return undefined
  }
}

/** Where a relinked listener waits for relinked clients. */
export function shadowName(key: string): string {
  return `\0fastsockets-${key}`.padEnd(SHADOW_NAME_SIZE, '-')
}
