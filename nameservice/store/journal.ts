/** Where a local store writes its changes before they count. */
import { randomBytes } from 'node:crypto'
import type { StoredChange, StoredEntry, StoredLease } from './store.ts'

export interface JournalHead {
  readonly epoch: string
  readonly revision: number
  /** Every change after this revision is kept. */
  readonly oldestRevision: number
  readonly nameCount: number
  readonly leaseCount: number
}

/** Everything that a journal holds, in order. */
export interface Snapshot {
  readonly head: JournalHead
  readonly leases: readonly StoredLease[]
  readonly entries: readonly StoredEntry[]
  readonly changes: readonly StoredChange[]
}

/** One write: all of it, or nothing. Changes outside of what its head speaks of are not kept any more. */
export interface Batch {
  readonly head: JournalHead
  readonly leases: ReadonlyMap<string, StoredLease | undefined>
  readonly entries: ReadonlyMap<string, StoredEntry | undefined>
  readonly changes: readonly StoredChange[]
}

export interface Journal {
  /** Throws a `StoreError`. `ERR_STORE_CORRUPT` if what is there makes no sense; it is left as it is. */
  open(): Promise<Snapshot>
  /** Puts what is there aside; `open` then begins anew. */
  quarantine(): Promise<void>
  write(batch: Batch): Promise<void>
  /** After a write has failed: makes the journal usable again, without the failed batch or with it. */
  reopen(): Promise<void>
  close(): Promise<void>
}

export function newEpoch(): string {
  return randomBytes(6).toString('hex')
}

export function emptySnapshot(): Snapshot {
  const head = { epoch: newEpoch(), revision: 0, oldestRevision: 0, nameCount: 0, leaseCount: 0 }
  return { head, leases: [], entries: [], changes: [] }
}

/** Keeps nothing. */
export const memoryJournal: Journal = {
  open: async () => emptySnapshot(),
  quarantine: async () => {},
  write: async () => {},
  reopen: async () => {},
  close: async () => {},
}
