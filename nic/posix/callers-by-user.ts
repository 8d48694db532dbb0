import { isOwnUser } from './own-user.ts'

/** A user id that the kernel reports, or the address of another host. */
export type CallerId = number | string

export interface CallerShares {
  readonly own: number
  /** Limit for each other user or address. */
  readonly other: number
  /** Limit for all other users and addresses together. */
  readonly others: number
}

/**
 * Counts the unfinished callers of one listener by caller id. No other caller can use up the share of the process's own
 * user. The limit for all others together keeps them from using up descriptors.
 */
export class CallersByUser {
  readonly #shares: CallerShares
  readonly #counts = new Map<CallerId, number>()
  #others = 0

  constructor(shares: CallerShares) {
    this.#shares = shares
  }

  /** Counts one caller; `leave` must follow. False, and nothing counted, if a share is used up. */
  enter(caller: CallerId): boolean {
    const { own, other, others } = this.#shares
    const count = this.#counts.get(caller) ?? 0
    const isOwn = isOwnCaller(caller)
    if (count >= (isOwn ? own : other) || (!isOwn && this.#others >= others)) return false
    this.#counts.set(caller, count + 1)
    if (!isOwn) this.#others++
    return true
  }

  leave(caller: CallerId): void {
    const count = (this.#counts.get(caller) as number) - 1
    if (count === 0) this.#counts.delete(caller)
    else this.#counts.set(caller, count)
    if (!isOwnCaller(caller)) this.#others--
  }
}

function isOwnCaller(caller: CallerId): boolean {
  return typeof caller === 'number' && isOwnUser(caller)
}
