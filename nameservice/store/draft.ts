/** Changes that are decided and not committed: the resulting state, and the writes. */
import { ExpectedFacts } from './expected-facts.ts'
import type { Image, LeaseState } from './image.ts'
import type { NewEntry, StoredChange, StoredEntry, StoredLease } from './stored.ts'

export class Draft extends ExpectedFacts {
  /** New states of names and leases; undefined: removed. */
  readonly entries = new Map<string, StoredEntry | undefined>()
  readonly leases = new Map<string, StoredLease | undefined>()
  readonly changes: StoredChange[] = []
  #revision: number

  constructor(image: Image, revision: number) {
    super(image)
    this.#revision = revision
  }

  get isEmpty(): boolean {
    return this.changes.length === 0 && this.leases.size === 0
  }

  get revision(): number {
    return this.#revision
  }

  override entry(name: string): StoredEntry | undefined {
    return this.entries.has(name) ? this.entries.get(name) : this.image.entry(name)
  }

  override lease(id: string): StoredLease | undefined {
    return this.leases.has(id) ? this.leases.get(id) : this.image.lease(id)
  }

  /** The lease, even if its time is up. */
  storedLease(id: string): LeaseState | StoredLease | undefined {
    return this.leases.has(id) ? this.leases.get(id) : this.image.storedLease(id)
  }

  grant(lease: StoredLease): void {
    this.leases.set(lease.id, lease)
    this.more.addLease(lease, 1)
  }

  put(entry: NewEntry): StoredChange {
    this.#forget(entry.name)
    this.more.addEntry(entry, 1)
    this.#revision += 1
    const { name, lease, owner, key, record } = entry
    // Not by spreading: V8 gives each such copy a hidden class of its own, which takes more memory than the copy.
    const stored = { name, lease, owner, key, record, revision: this.#revision }
    this.entries.set(entry.name, stored)
    return this.#record(entry.name, stored)
  }

  remove(name: string): StoredChange {
    this.#forget(name)
    this.#revision += 1
    this.entries.set(name, undefined)
    return this.#record(name, undefined)
  }

  /** Ends the lease, with its names in their order. */
  end(lease: LeaseState | StoredLease): void {
    const { id } = lease
    const names = new Set('names' in lease ? lease.names : [])
    for (const [name, entry] of this.entries) if (entry?.lease === id) names.add(name)
    for (const name of [...names].sort()) if (this.#storedEntry(name)?.lease === id) this.remove(name)
    this.leases.set(id, undefined)
    this.more.addLease(lease, -1)
  }

  /** Applies the draft to the image, once the store has it. */
  applyTo(image: Image): void {
    for (const lease of this.leases.values()) if (lease !== undefined) image.putLease(lease, true)
    for (const [name, entry] of this.entries) {
      if (entry === undefined) image.dropEntry(name)
      else image.putEntry(entry)
    }
    for (const [id, lease] of this.leases) if (lease === undefined) image.dropLease(id)
  }

  #forget(name: string): void {
    const entry = this.#storedEntry(name)
    if (entry !== undefined) this.more.addEntry(entry, -1)
  }

  /** The entry of the name, even if its lease is past its time. */
  #storedEntry(name: string): StoredEntry | undefined {
    return this.entries.has(name) ? this.entries.get(name) : this.image.storedEntry(name)
  }

  #record(name: string, entry: StoredEntry | undefined): StoredChange {
    const change = { revision: this.#revision, part: 0, name, entry }
    this.changes.push(change)
    return change
  }
}
