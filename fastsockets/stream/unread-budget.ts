/**
 * How much the sockets of this process keep in its memory for programs that do not read, and for peers that do not: received
 * bytes that are unread, and written bytes that are not sent. A kernel bounds the same by tcp_mem.
 *
 * Beyond the budget the windows of this process's sockets shrink, a write counts as written only once it is sent, and new peers
 * get TCP. All threads of the process count together, and each knows the others' bytes to 64 KiB.
 *
 * Each peer has a share of the budget, by thread. Beyond it the same happens to the sockets of that peer alone, but that other
 * peers keep the fast way.
 */
import { totalmem } from 'node:os'
import { COUNT_GRANTED, COUNT_KEPT, ProcessCount } from '../../nic/index.ts'
import { SHRUNK_WINDOW, WINDOW } from './stream-layout.ts'

/** A quarter of the memory that the process may use, */
const BUDGET_SHARE = 4
/** and so much at least. */
export const UNREAD_BUDGET_MIN = 64 << 20

/** A peer may take a sixteenth of the budget, */
const PEER_SHARE = 16
/** and so much at least, as far as half of the budget goes. */
export const PEER_UNREAD_MIN = 64 << 20

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
let peerBudget = shareOf(budget)
const kept = new ProcessCount(COUNT_KEPT, COUNT_STEP)
/** The windows of all sockets together. */
const granted = new ProcessCount(COUNT_GRANTED, COUNT_STEP)

/** What one peer may take of a budget. */
export function shareOf(bytes: number): number {
  return Math.max(Math.floor(bytes / PEER_SHARE), Math.min(PEER_UNREAD_MIN, Math.floor(bytes / 2)))
}

export function isOverBudget(): boolean {
  return kept.total > budget
}

/** What one peer takes of the budget in this thread: a process, or all processes of another user. */
export class UnreadShare {
  private kept = 0
  private granted = 0

  /** So many bytes more are kept, or less if negative. */
  noteKept(length: number): void {
    this.kept += length
    kept.add(length)
  }

  isOverBudget(): boolean {
    return this.kept > peerBudget || kept.total > budget
  }

  /** A socket with a window of that size is there, or has gone if negative. */
  noteGranted(size: number): void {
    this.granted += size
    granted.add(size)
  }

  /**
   * What the peer of one more socket may have under way. A window cannot be taken back, so all of them together are no more
   * than the budget, and those of a peer no more than its share, as long as each may be the least: peers that fill theirs at
   * once, unread, fill no more memory than that.
   */
  windowToGrant(): number {
    if (this.isOverBudget()) return SHRUNK_WINDOW
    const left = Math.min(budget - granted.total, peerBudget - this.granted)
    return Math.max(SHRUNK_WINDOW, Math.min(Math.floor(left / SHARES_LEFT), WINDOW))
  }
}

/** For tests: another budget, until it is called without one. */
export function setUnreadBudget(bytes = UNREAD_BUDGET): void {
  budget = bytes
  peerBudget = shareOf(bytes)
}

export function keptBytes(): number {
  return kept.total
}
