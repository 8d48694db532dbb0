/**
 * How much memory the sockets of this process use for bytes that are received and unread, or written and not sent. A
 * kernel bounds the same by tcp_mem.
 *
 * Beyond the budget the windows of this process's sockets shrink, a write counts as written only once it is sent, and
 * new peers get TCP. Once the windows of all sockets are twice the budget, new
 * sockets get TCP. All threads of the process count together; each knows the others' bytes to 64 KiB.
 *
 * In each thread, each peer has a share of the budget. Beyond it the same happens to the sockets of that peer alone.
 */
import { totalmem } from 'node:os'
import { COUNT_GRANTED, COUNT_KEPT, ProcessCount } from '../../nic/index.ts'
import { SHRUNK_WINDOW, WINDOW } from './stream-layout.ts'

/** The budget is the usable memory divided by this. */
const BUDGET_SHARE = 4
/** The smallest budget. */
export const UNREAD_BUDGET_MIN = 64 << 20

/** A peer's budget is the whole budget divided by this. */
const PEER_SHARE = 16
/** The smallest budget of a peer, or half of the whole budget if that is less. */
export const PEER_UNREAD_MIN = 64 << 20

/** A thread publishes its counts in steps of so many bytes. */
const COUNT_STEP = 64 * 1024

/** Memory of the machine, or of the container. */
function usableMemory(): number {
  const constrained = process.constrainedMemory?.() ?? 0
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem()
}

export const UNREAD_BUDGET = Math.max(UNREAD_BUDGET_MIN, Math.floor(usableMemory() / BUDGET_SHARE))

/** The windows of all sockets together are at most so many times the budget: then peers get TCP for new sockets. */
const GRANTED_MAX = 2

/** A new socket gets at most the bytes that are not granted yet, divided by this. */
const SHARES_LEFT = 16

let budget = UNREAD_BUDGET
let peerBudget = shareOf(budget)
const kept = new ProcessCount(COUNT_KEPT, COUNT_STEP)
/** The windows of all sockets together. */
const granted = new ProcessCount(COUNT_GRANTED, COUNT_STEP)

/** The budget of one peer. */
export function shareOf(bytes: number): number {
  return Math.max(Math.floor(bytes / PEER_SHARE), Math.min(PEER_UNREAD_MIN, Math.floor(bytes / 2)))
}

export function isOverBudget(): boolean {
  return kept.total > budget
}

/** Counts the bytes of one peer in this thread: of a process, or of all processes of another user. */
export class UnreadShare {
  private kept = 0
  private granted = 0

  /** Counts bytes that are kept; negative if fewer. */
  noteKept(length: number): void {
    this.kept += length
    kept.add(length)
  }

  isOverBudget(): boolean {
    return this.kept > peerBudget || kept.total > budget
  }

  /** Counts the window of a new socket; negative for one that has closed. */
  noteGranted(size: number): void {
    this.granted += size
    granted.add(size)
  }

  /** Whether a new socket may have a window. */
  mayGrant(): boolean {
    return granted.total < GRANTED_MAX * budget
  }

  /**
   * The window for the peer of a new socket. Windows cannot be withdrawn: so all together stay within the budget, and
   * those of a peer within its share, as long as each has the minimum. Peers that fill theirs at once then fill no more
   * memory than that.
   */
  windowToGrant(): number {
    if (this.isOverBudget()) return SHRUNK_WINDOW
    const left = Math.min(budget - granted.total, peerBudget - this.granted)
    return Math.max(SHRUNK_WINDOW, Math.min(Math.floor(left / SHARES_LEFT), WINDOW))
  }
}

/** For tests: sets another budget; without an argument, the default. */
export function setUnreadBudget(bytes = UNREAD_BUDGET): void {
  budget = bytes
  peerBudget = shareOf(bytes)
}

export function keptBytes(): number {
  return kept.total
}
