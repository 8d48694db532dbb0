/**
 * How much the sockets of this process keep in its memory for programs that do not read, and for peers that do not: received
 * bytes that are unread, and written bytes that are not sent. A kernel bounds the same by tcp_mem.
 *
 * Beyond the budget the windows of this process's sockets shrink, a write counts as written only once it is sent, and new peers
 * get TCP. Each thread counts its own bytes.
 */
import { totalmem } from 'node:os'
import { SHRUNK_WINDOW, WINDOW } from './stream-layout.ts'

/** A quarter of the memory that the process may use, */
const BUDGET_SHARE = 4
/** and so much at least. */
export const UNREAD_BUDGET_MIN = 64 << 20

/** Memory of the machine, or of the container. */
function usableMemory(): number {
  const constrained = process.constrainedMemory?.() ?? 0
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
}

export const UNREAD_BUDGET = Math.max(UNREAD_BUDGET_MIN, Math.floor(usableMemory() / BUDGET_SHARE))

/** A socket gets at most one in so many of the bytes that are not granted yet. */
const SHARES_LEFT = 16

let budget = UNREAD_BUDGET
let kept = 0
/** The windows of all sockets together. */
let granted = 0

/** So many bytes more are kept, or less if negative. */
export function noteKept(length: number): void {
  kept += length
}

export function isOverBudget(): boolean {
  return kept > budget
}

/** A socket with a window of that size is there, or has gone if negative. */
export function noteGranted(size: number): void {
  granted += size
}

/**
 * What the peer of one more socket may have under way. A window cannot be taken back, so all of them together are no more than
 * the budget, as long as each may be the least: peers that fill theirs at once, unread, fill no more memory than that.
 */
export function windowToGrant(): number {
  if (isOverBudget()) return SHRUNK_WINDOW
  const share = Math.floor((budget - granted) / SHARES_LEFT)
  return Math.max(SHRUNK_WINDOW, Math.min(share, WINDOW))
}

/** For tests: another budget, until it is called without one. */
export function setUnreadBudget(bytes = UNREAD_BUDGET): void {
  budget = bytes
}

export function keptBytes(): number {
  return kept
}
