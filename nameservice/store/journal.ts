/** Where a local store writes its changes before they take effect. */
import { randomBytes } from 'node:crypto'
import type { StoredChange, StoredEntry, StoredLease } from './stored.ts'

export interface JournalHead {
  readonly epoch: string
  readonly revision: number
  /** The journal has every change after this revision. */
  readonly oldestRevision: number
  readonly nameCount: number
  readonly leaseCount: number
}

/** The contents of a journal, in order. */
export interface Snapshot {
  readonly head: JournalHead
  readonly leases: readonly StoredLease[]
  readonly entries: readonly StoredEntry[]
  readonly changes: readonly StoredChange[]
}

/** One write: all of it, or nothing. Changes older than its head's range are dropped. */
export interface Batch {
  readonly head: JournalHead
  readonly leases: ReadonlyMap<string, StoredLease | undefined>
  readonly entries: ReadonlyMap<string, StoredEntry | undefined>
  readonly changes: readonly StoredChange[]
}

export interface Journal {
  /** Throws a `StoreError`. `ERR_STORE_CORRUPT` if the contents are invalid; they are left as they are. */
  open(): Promise<Snapshot>
  /** Puts the contents aside; `open` then begins a new journal. */
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

/** The journal without storage. */
export const memoryJournal: Journal = {
  open: async () => emptySnapshot(),
  quarantine: async () => {},
  write: async () => {},
  reopen: async () => {},
  close: async () => {},
}
