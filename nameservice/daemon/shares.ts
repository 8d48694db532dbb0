/**
 * Limits each owner's share of the daemon's resources (docs/decisions/0132). The share of names, records, leases,
 * watchers and connections is a quarter by default; a sixteenth of everything is reserved for administrators.
 */
import { Refusal } from '../problem.ts'
import type { Principal } from './principal.ts'

/** One in so many of each total is reserved for administrators. */
const RESERVED_ONE_IN = 16
/** Most changes of one owner that wait for the store: a quarter of the store's queue (`QUEUE_MAX`). */
const CHANGES_PER_OWNER_MAX = 2048
const RETRY_HINT_MS = 100

export type Caller = Pick<Principal, 'owner' | 'isAdmin'>

/** The part of a total that this caller may fill. */
export function limitFor({ isAdmin }: Pick<Caller, 'isAdmin'>, total: number): number {
  return isAdmin ? total : total - Math.floor(total / RESERVED_ONE_IN)
}

export function tooManyInAll(what: string, caller: Pick<Caller, 'isAdmin'>, total: number): Refusal {
  const reserve = caller.isAdmin
    ? ''
    : `, the last ${total - limitFor(caller, total)} of them for administrators`
  return new Refusal('limit-total', `There may be ${total} ${what}${reserve}.`)
}

/** Counts changes that wait for the store, by owner: a flood of one owner delays others by a few batches at most. */
export class ChangesByOwner {
  readonly #counts = new Map<string, number>()

  /** Throws a refusal if too many changes of the owner are under way. */
  begin(owner: string): void {
    const count = this.#counts.get(owner) ?? 0
    if (count >= CHANGES_PER_OWNER_MAX) {
      throw new Refusal('rate', `${CHANGES_PER_OWNER_MAX} changes of this owner are under way.`, {
        retryAfterMs: RETRY_HINT_MS,
      })
    }
    this.#counts.set(owner, count + 1)
  }

  end(owner: string): void {
    const left = (this.#counts.get(owner) ?? 1) - 1
    if (left === 0) this.#counts.delete(owner)
    else this.#counts.set(owner, left)
  }
}
