/** Changes that are decided but not committed yet: the facts as they will be, and what to write. */
import type { Image, LeaseState } from './image.ts'
import type { Facts, NewEntry, StoredChange, StoredEntry, StoredLease } from './store.ts'

export class Draft implements Facts {
  /** What becomes of names and leases; undefined: they are gone. */
  readonly entries = new Map<string, StoredEntry | undefined>()
  readonly leases = new Map<string, StoredLease | undefined>()
  readonly changes: StoredChange[] = []
  readonly #image: Image
  readonly #namesMore = new Map<string, number>()
  readonly #leasesMore = new Map<string, number>()
  #nameCount: number
  #leaseCount: number
  #recordsLength: number
  #revision: number

  constructor(image: Image, revision: number) {
    this.#image = image
    this.#revision = revision
    this.#nameCount = image.nameCount
    this.#leaseCount = image.leaseCount
    this.#recordsLength = image.recordsLength
  }

  get isEmpty(): boolean {
    return this.changes.length === 0 && this.leases.size === 0
  }

  get revision(): number {
    return this.#revision
  }

  get nameCount(): number {
    return this.#nameCount
  }

  get leaseCount(): number {
    return this.#leaseCount
  }

  get recordsLength(): number {
    return this.#recordsLength
  }

  entry(name: string): StoredEntry | undefined {
    return this.entries.has(name) ? this.entries.get(name) : this.#image.entry(name)
  }

  lease(id: string): StoredLease | undefined {
    return this.leases.has(id) ? this.leases.get(id) : this.#image.lease(id)
  }

  /** The lease, though its time may be up. */
  storedLease(id: string): LeaseState | StoredLease | undefined {
    return this.leases.has(id) ? this.leases.get(id) : this.#image.storedLease(id)
  }

  nameCountOf(lease: string): number {
    return this.#image.nameCountOf(lease) + (this.#namesMore.get(lease) ?? 0)
  }

  leaseCountOf(owner: string): number {
    return this.#image.leaseCountOf(owner) + (this.#leasesMore.get(owner) ?? 0)
  }

  grant(lease: StoredLease): void {
    this.leases.set(lease.id, lease)
    this.#leaseCount += 1
    add(this.#leasesMore, lease.owner, 1)
  }

  put(entry: NewEntry): StoredChange {
    this.#forget(entry.name)
    this.#nameCount += 1
    this.#recordsLength += entry.record.length
    add(this.#namesMore, entry.lease, 1)
    this.#revision += 1
    const { name, lease, owner, key, record } = entry
    // Not by spreading: V8 gives each copy a hidden class of its own, which takes more memory than the copy.
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
    const { id, owner } = lease
    const names = new Set('names' in lease ? lease.names : [])
    for (const [name, entry] of this.entries) if (entry?.lease === id) names.add(name)
    for (const name of [...names].sort()) if (this.#storedEntry(name)?.lease === id) this.remove(name)
    this.leases.set(id, undefined)
    this.#leaseCount -= 1
    add(this.#leasesMore, owner, -1)
  }

  /** Makes the image what the draft says, once the store has it. */
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
    if (entry === undefined) return
    this.#nameCount -= 1
    this.#recordsLength -= entry.record.length
    add(this.#namesMore, entry.lease, -1)
  }

  /** What the name stands for, though its lease may be past its time. */
  #storedEntry(name: string): StoredEntry | undefined {
    return this.entries.has(name) ? this.entries.get(name) : this.#image.storedEntry(name)
  }

  #record(name: string, entry: StoredEntry | undefined): StoredChange {
    const change = { revision: this.#revision, part: 0, name, entry }
    this.changes.push(change)
    return change
  }
}

function add(counts: Map<string, number>, key: string, more: number): void {
  counts.set(key, (counts.get(key) ?? 0) + more)
}
