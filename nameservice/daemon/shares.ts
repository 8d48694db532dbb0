/**
 * Who gets how much of what there is (docs/decisions/0132). Each owner has a share of names, records, leases, watchers and
 * connections, a quarter by default; a sixteenth of everything is left to administrators.
 */
import { Refusal } from '../problem.ts'
import type { Principal } from './principal.ts'

/** Of each total, what only administrators may use: one in so many. */
const RESERVED_ONE_IN = 16
/** Changes of one owner that wait for the store, a quarter of what the store takes (`QUEUE_MAX`). */
const CHANGES_PER_OWNER_MAX = 2048
const RETRY_HINT_MS = 100

export type Caller = Pick<Principal, 'owner' | 'isAdmin'>

/** How much of a total may be in use when this caller asks for more. */
export function limitFor({ isAdmin }: Pick<Caller, 'isAdmin'>, total: number): number {
  return isAdmin ? total : total - Math.floor(total / RESERVED_ONE_IN)
}

export function tooManyInAll(what: string, caller: Pick<Caller, 'isAdmin'>, total: number): Refusal {
  const reserve = caller.isAdmin
    ? ''
    : `, the last ${total - limitFor(caller, total)} of them for administrators`
  return new Refusal('limit-total', `There may be ${total} ${what}${reserve}.`)
}

/** Changes that wait for the store: nobody's flood makes others wait for longer than a few batches. */
export class ChangesByOwner {
  readonly #counts = new Map<string, number>()

  /** Throws a refusal if the owner must wait for its own changes first. */
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
