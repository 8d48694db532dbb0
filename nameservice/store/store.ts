/**
 * The contract of a store: one truth, `image`, which is committed, and its history, `log`. Both change only after the
 * change is stored safely. Rules (which owner may register what) are not the store's: a judge gets the state as it will
 * be when the change is made, and refuses by throwing.
 */
import type { ChangeLog } from './change-log.ts'
import type { Image } from './image.ts'
import type { Facts, NewEntry, StoredChange, StoredLease } from './stored.ts'

export type StoreState = 'ready' | 'unavailable'

/** Reports to the operator. `error` contains no path and no secret. */
export interface StoreObserver {
  handleState(state: StoreState, reason: string): void
  handleCommit(changes: number, durationMs: number): void
  handleExpired(leases: number): void
  /** A damaged store was put aside, and an empty one begun. */
  handleQuarantine(reason: string): void
}

export interface Store {
  readonly image: Image
  readonly log: ChangeLog
  /** `unavailable`: nothing can be changed now. */
  readonly state: StoreState
  /** True if another daemon may have changed the state without this image knowing it yet. */
  readonly isStale: boolean

  open(): Promise<void>
  /** Renews every lease. */
  close(): Promise<void>

  /** Resolves when `image` has the lease, if it exists: another daemon may have granted it. */
  fetchLease(lease: string): Promise<void>
  grant(owner: string, ttlMs: number, judge: (facts: Facts) => void): Promise<StoredLease>
  /** Undefined if the lease has ended. */
  keepAlive(id: string): Promise<StoredLease | undefined>
  /** Ends a lease and everything that is registered under it; false if there was none. */
  revoke(id: string): Promise<boolean>
  /** Puts what `judge` returns under `name`, or removes the name if that is undefined. */
  update(name: string, judge: (facts: Facts) => NewEntry | undefined): Promise<StoredChange>
}

/** The store cannot be used, for a reason that an operator must fix. */
export class StoreError extends Error {
  readonly code: 'ERR_STORE_LOCKED' | 'ERR_STORE_CORRUPT' | 'ERR_STORE_UNAVAILABLE'

  constructor(code: StoreError['code'], message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'StoreError'
    this.code = code
  }
}
