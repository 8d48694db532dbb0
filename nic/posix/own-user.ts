/** Whether a user id that the kernel reports for another process is that of this process's user. */
import { readFileSync } from 'node:fs'

/** Every user id of 32 bits but the last, which stands for "no change" in setuid(2). */
const USER_IDS = 0xffff_ffff
const OVERFLOW_UID_DEFAULT = 65534
/** Every user id is mapped: the kernel has no stand-in. */
const NONE = -1

let overflowUid: number | undefined

/** Effective user ids: those are what SO_PEERCRED reports (unix(7)). */
export function isOwnUser(uid: number): boolean {
  return uid === process.geteuid?.() && !isNobody(uid)
}

/**
 * In a user namespace the kernel reports the overflow uid for every user whom the namespace does not map
 * (user_namespaces(7)): any number of users share it, so it identifies none of them.
 */
export function isNobody(uid: number): boolean {
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

/** `map`: lines of first id inside, first id outside, and how many. */
export function mapsEveryUser(map: string): boolean {
  const counts = map
    .trim()
    .split('\n')
    .map(line => Number(line.trim().split(/\s+/)[2]))
  return counts.reduce((sum, count) => sum + count, 0) >= USER_IDS
}
