/** Compares user ids that the kernel reports for other processes with this process's user. */
import { readFileSync } from 'node:fs'

/** The number of valid 32-bit user ids: the last value means "no change" in setresuid(2). */
const USER_IDS = 0xffff_ffff
const OVERFLOW_UID_DEFAULT = 65534
/** Equals no user id: every user is mapped, so the kernel never reports the overflow uid for another one. */
const NONE = -1

let overflowUid: number | undefined

/** `uid` is an effective user id, as SO_PEERCRED reports it (unix(7)). */
export function isOwnUser(uid: number): boolean {
  return uid === process.geteuid?.() && !isOverflowUser(uid)
}

/**
 * Whether `uid` is the overflow uid. In a user namespace the kernel reports it for every unmapped user
 * (user_namespaces(7)), so it identifies none of them.
 */
export function isOverflowUser(uid: number): boolean {
  overflowUid ??= findOverflowUid()
  return uid === overflowUid
}

function findOverflowUid(): number {
  try {
    if (mapsEveryUser(readFileSync('/proc/self/uid_map', 'latin1'))) return NONE
    return Number(readFileSync('/proc/sys/kernel/overflowuid', 'latin1'))
  } catch {
    return OVERFLOW_UID_DEFAULT
  }
}

/** `map` is a uid_map: each line has the first id inside, the first id outside, and the number of ids. */
export function mapsEveryUser(map: string): boolean {
  const counts = map
    .trim()
    .split('\n')
    .map(line => Number(line.trim().split(/\s+/)[2]))
  return counts.reduce((sum, count) => sum + count, 0) >= USER_IDS
}
