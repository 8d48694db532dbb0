/**
 * How much the sockets of this process keep in its memory for programs that do not read, and for peers that do not: received
 * bytes that are unread, and written bytes that are not sent. A kernel bounds the same by tcp_mem.
 *
 * Beyond the budget the windows of this process's sockets shrink, a write counts as written only once it is sent, and new peers
 * get TCP. All threads of the process count together, and each knows the others' bytes to 64 KiB.
 */
import { totalmem } from 'node:os'
import { COUNT_GRANTED, COUNT_KEPT, ProcessCount } from '../../nic/index.ts'
import { SHRUNK_WINDOW, WINDOW } from './stream-layout.ts'

/** A quarter of the memory that the process may use, */
const BUDGET_SHARE = 4
/** and so much at least. */
export const UNREAD_BUDGET_MIN = 64 << 20

/** A thread publishes its counts in steps of so many bytes. */
const COUNT_STEP = 64 * 1024

/** Memory of the machine, or of the container. */
function usableMemory(): number {
  const constrained = process.constrainedMemory?.() ?? 0
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
}

export const UNREAD_BUDGET = Math.max(UNREAD_BUDGET_MIN, Math.floor(usableMemory() / BUDGET_SHARE))

/** A socket gets at most one in so many of the bytes that are not granted yet. */
const SHARES_LEFT = 16

let budget = UNREAD_BUDGET
const kept = new ProcessCount(COUNT_KEPT, COUNT_STEP)
/** The windows of all sockets together. */
const granted = new ProcessCount(COUNT_GRANTED, COUNT_STEP)

/** So many bytes more are kept, or less if negative. */
export function noteKept(length: number): void {
  kept.add(length)
}

export function isOverBudget(): boolean {
  return kept.total > budget
}

/** A socket with a window of that size is there, or has gone if negative. */
export function noteGranted(size: number): void {
  granted.add(size)
}

/**
 * What the peer of one more socket may have under way. A window cannot be taken back, so all of them together are no more than
 * the budget, as long as each may be the least: peers that fill theirs at once, unread, fill no more memory than that.
 */
export function windowToGrant(): number {
  if (isOverBudget()) return SHRUNK_WINDOW
  const share = Math.floor((budget - granted.total) / SHARES_LEFT)
  return Math.max(SHRUNK_WINDOW, Math.min(share, WINDOW))
}

/** For tests: another budget, until it is called without one. */
export function setUnreadBudget(bytes = UNREAD_BUDGET): void {
  budget = bytes
}

export function keptBytes(): number {
  return kept.total
}
