/** What a store holds: leases, entries, and the changes between two revisions. */

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
