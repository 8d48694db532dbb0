/**
 * What the daemon needs of a store: one truth, `image`, which is committed, and its history, `log`. Both change only
 * after the change is stored safely. Rules (which owner may register what) are not the store's: a judge gets the state
 * as it will be when the change is made, and refuses by throwing.
 */
import type { ChangeLog } from './change-log.ts'
import type { Image } from './image.ts'

export interface StoredLease {
  readonly id: string
  readonly owner: string
  readonly ttlMs: number
}

export interface NewEntry {
  readonly name: string
  readonly lease: string
  readonly owner: string
  /** Digest of the owner key, or empty. */
  readonly key: string
  /** The `NameRecord`, as JSON: it is sent far more often than it is parsed. */
  readonly record: string
}

export interface StoredEntry extends NewEntry {
  readonly revision: number
}

export interface StoredChange {
  readonly revision: number
  /** 0: the only change of its revision, or the last. Else its number, from 1 on. */
  readonly part: number
  readonly name: string
  /** The new entry; undefined if the name is removed. */
  readonly entry: StoredEntry | undefined
}

/** What a judge may read. */
export interface Facts {
  readonly nameCount: number
  readonly leaseCount: number
  /** Characters of all records together. */
  readonly recordsLength: number
  entry(name: string): StoredEntry | undefined
  /** Undefined if there is none, or it has ended. */
  lease(id: string): StoredLease | undefined
  nameCountOf(lease: string): number
  leaseCountOf(owner: string): number
  nameCountOfOwner(owner: string): number
  /** Characters of the records of its names. */
  recordsLengthOf(owner: string): number
}

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
  hearOf(lease: string): Promise<void>
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
