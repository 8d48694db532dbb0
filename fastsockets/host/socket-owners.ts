/** The processes that have sockets open, by the links below /proc/PID/fd, as `ss -p` finds them. */
import { type Dir, opendirSync, readdirSync, readlinkSync } from 'node:fs'

/** Descriptors between two pauses of a search: some 0.2 ms. */
const SEARCHED_AT_ONCE = 32

/**
 * Pairs of an inode in `inodes` and the id of a process that has the socket. Processes that this user may not inspect are missing.
 * Throws if there is no /proc. Takes some milliseconds for each hundred processes of this host, or thousand descriptors.
 */
export function* processesOf(inodes: ReadonlyMap<number, unknown>): Generator<[inode: number, pid: string]> {
  for (const found of searchProcesses(inodes)) if (found !== undefined) yield found
}

/** The same, with undefined where the caller may pause. */
export function* searchProcesses(
  inodes: ReadonlyMap<number, unknown>,
): Generator<[inode: number, pid: string] | undefined> {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    let at = 0
    for (const link of descriptorsOf(pid)) {
      const inode = inodeAt(`/proc/${pid}/fd/${link}`)
      if (inode !== undefined && inodes.has(inode)) yield [inode, pid]
      if (at++ % SEARCHED_AT_ONCE === 0) yield undefined
    }
  }
}

/** One by one: a process may have a million. None if it may not be inspected, or has ended. */
function* descriptorsOf(pid: string): Generator<string> {
  let folder: Dir | undefined
  try {
    folder = opendirSync(`/proc/${pid}/fd`)
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) yield entry.name
  } catch {
    // What was found before counts.
  } finally {
    folder?.closeSync()
  }
}

function inodeAt(path: string): number | undefined {
  const link = linkAt(path)
  return link === undefined ? undefined : inodeOfLink(link)
}

/** Where the descriptors of a process lead; without those that it closes meanwhile. Throws if it may not be inspected. */
export function linksOf(pid: string): string[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap(fd => linkAt(`${folder}/${fd}`) ?? [])
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Of a socket, by the link of its descriptor. */
export function inodeOfLink(link: string): number | undefined {
  const [, inode] = /^socket:\[(\d+)\]$/.exec(link) ?? []
  return inode === undefined ? undefined : Number(inode)
}
