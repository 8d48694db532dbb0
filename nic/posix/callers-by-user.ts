import { isOwnUser } from './own-user.ts'

/**
 * How many callers of one listener have not finished yet, by who they are: a user whom the kernel names, or an address of
 * another host. The process's own user has a share that no other caller can use up; every other has a small one, and all
 * others together have a limit, so that they cannot use up descriptors either.
 */
export type CallerId = number | string

export interface CallerShares {
  readonly own: number
  /** Of one other user, or one address. */
  readonly other: number
  /** Of all others together. */
  readonly others: number
}

export class CallersByUser {
  readonly #shares: CallerShares
  readonly #counts = new Map<CallerId, number>()
  #others = 0

  constructor(shares: CallerShares) {
    this.#shares = shares
  }

  /** False if that caller has too many already; else `leave` must follow. */
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
