import { isOwnUser } from './own-user.ts'

/**
 * How many callers of one unix socket there are, by the user whom the kernel says they are of. Nobody but this process's own
 * user can have more than a few, so that strangers can neither keep others away nor use up descriptors.
 */
export class CallersByUser {
  readonly #ownMax: number
  readonly #otherMax: number
  readonly #counts = new Map<number, number>()

  constructor(ownMax: number, otherMax: number) {
    this.#ownMax = ownMax
    this.#otherMax = otherMax
  }

  /** False if that user has too many already; else `leave` must follow. */
  enter(uid: number): boolean {
    const count = this.#counts.get(uid) ?? 0
    if (count >= (isOwnUser(uid) ? this.#ownMax : this.#otherMax)) return false
    this.#counts.set(uid, count + 1)
    return true
  }

  leave(uid: number): void {
    const count = (this.#counts.get(uid) as number) - 1
    if (count === 0) this.#counts.delete(uid)
    else this.#counts.set(uid, count)
  }
}
