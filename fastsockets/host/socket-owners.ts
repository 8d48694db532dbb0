/** The processes that have sockets open, by the links below /proc/PID/fd, as `ss -p` finds them. */
import { readdirSync, readlinkSync } from 'node:fs'

/**
 * Pairs of an inode in `inodes` and the id of a process that has the socket. Processes that this user may not inspect are missing.
 * Throws if there is no /proc. Takes some milliseconds for each hundred processes of this host.
 */
export function* processesOf(inodes: ReadonlyMap<number, unknown>): Generator<[inode: number, pid: string]> {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    let links: string[]
    try {
      links = readdirSync(`/proc/${pid}/fd`)
    } catch {
      continue
    }
    for (const link of links) {
      const inode = inodeOf(`/proc/${pid}/fd/${link}`)
      if (inode !== undefined && inodes.has(inode)) yield [inode, pid]
    }
  }
}

function inodeOf(link: string): number | undefined {
  try {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(readlinkSync(link)) ?? []
    return inode === undefined ? undefined : Number(inode)
  } catch {
    return undefined
  }
}
