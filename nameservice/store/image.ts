/** All names and leases, in memory: what has been committed. */
import { Holdings } from './holdings.ts'
import type { LeaseClock } from './lease-clock.ts'
import type { Facts, StoredEntry, StoredLease } from './stored.ts'

export interface LeaseState extends StoredLease {
  readonly names: Set<string>
  /** By the lease clock. Infinite if etcd keeps the time. */
  deadlineMs: number
}

export class Image implements Facts {
  readonly #clock: LeaseClock
  readonly #entries = new Map<string, StoredEntry>()
  /** The same names, sorted, for listings. */
  readonly #sorted: string[] = []
  readonly #leases = new Map<string, LeaseState>()
  readonly #leasesByOwner = new Map<string, Set<string>>()
  #held = new Holdings()

  constructor(clock: LeaseClock) {
    this.#clock = clock
  }

  get nameCount(): number {
    return this.#entries.size
  }

  get leaseCount(): number {
    return this.#leases.size
  }

  get recordsLength(): number {
    return this.#held.all.recordsLength
  }

  /** Undefined also in the moment between the end of its lease and its removal. */
  entry(name: string): StoredEntry | undefined {
    const entry = this.#entries.get(name)
    return entry !== undefined && this.#isLive(entry, this.#clock.nowMs()) ? entry : undefined
  }

  /** The same, whether or not its lease has ended. */
  storedEntry(name: string): StoredEntry | undefined {
    return this.#entries.get(name)
  }

  storedLease(id: string): LeaseState | undefined {
    return this.#leases.get(id)
  }

  lease(id: string): LeaseState | undefined {
    const lease = this.#leases.get(id)
    return lease !== undefined && lease.deadlineMs > this.#clock.nowMs() ? lease : undefined
  }

  nameCountOf(lease: string): number {
    return this.#leases.get(lease)?.names.size ?? 0
  }

  leaseCountOf(owner: string): number {
    return this.#leasesByOwner.get(owner)?.size ?? 0
  }

  nameCountOfOwner(owner: string): number {
    return this.#held.of(owner).names
  }

  recordsLengthOf(owner: string): number {
    return this.#held.of(owner).recordsLength
  }

  /** Up to `limit` entries whose names begin with `prefix` and come after `after`, in order. */
  list(prefix: string, after: string, limit: number): StoredEntry[] {
    const nowMs = this.#clock.nowMs()
    const found: StoredEntry[] = []
    let index = Math.max(this.#position(prefix), after === '' ? 0 : this.#positionAfter(after))
    for (; found.length < limit; index++) {
      const name = this.#sorted[index]
      if (name === undefined || !name.startsWith(prefix)) break
      const entry = this.#entries.get(name) as StoredEntry
      if (this.#isLive(entry, nowMs)) found.push(entry)
    }
    return found
  }

  /** Up to `limit` leases of `owner`, or of all owners, whose ids come after `after`, in the order of their ids. */
  leases(owner?: string, after = '', limit = Number.POSITIVE_INFINITY): LeaseState[] {
    const nowMs = this.#clock.nowMs()
    let found: LeaseState[] = []
    let last: string | undefined
    for (const id of owner === undefined ? this.#leases.keys() : (this.#leasesByOwner.get(owner) ?? [])) {
      const lease = this.#leases.get(id) as LeaseState
      if (id <= after || (last !== undefined && id > last) || lease.deadlineMs <= nowMs) continue
      // Surplus leases are cut from time to time, so a page costs little more than one look at each lease.
      if (found.push(lease) < 2 * limit) continue
      found = firstOf(found, limit)
      last = found.at(-1)?.id
    }
    return firstOf(found, limit)
  }

  expiredLeases(): string[] {
    const nowMs = this.#clock.nowMs()
    const expired: string[] = []
    for (const lease of this.#leases.values()) if (lease.deadlineMs <= nowMs) expired.push(lease.id)
    return expired
  }

  /** Renews the whole TTL. */
  renew(lease: LeaseState): void {
    lease.deadlineMs = this.#clock.nowMs() + lease.ttlMs
  }

  expiresInMs(lease: LeaseState): number | undefined {
    const leftMs = lease.deadlineMs - this.#clock.nowMs()
    return Number.isFinite(leftMs) ? Math.max(0, Math.ceil(leftMs)) : undefined
  }

  putLease({ id, owner, ttlMs }: StoredLease, hasDeadline: boolean): void {
    const deadlineMs = hasDeadline ? this.#clock.nowMs() + ttlMs : Number.POSITIVE_INFINITY
    const names = this.#leases.get(id)?.names ?? new Set<string>()
    this.#leases.set(id, { id, owner, ttlMs, names, deadlineMs })
    const owned = this.#leasesByOwner.get(owner)
    if (owned === undefined) this.#leasesByOwner.set(owner, new Set([id]))
    else owned.add(id)
  }

  dropLease(id: string): void {
    const lease = this.#leases.get(id)
    if (lease === undefined) return
    this.#leases.delete(id)
    const owned = this.#leasesByOwner.get(lease.owner)
    owned?.delete(id)
    if (owned?.size === 0) this.#leasesByOwner.delete(lease.owner)
  }

  putEntry(entry: StoredEntry): void {
    const before = this.#entries.get(entry.name)
    if (before === undefined) this.#sorted.splice(this.#position(entry.name), 0, entry.name)
    else if (before.lease !== entry.lease) this.#leases.get(before.lease)?.names.delete(entry.name)
    this.#entries.set(entry.name, entry)
    if (before !== undefined) this.#held.addEntry(before, -1)
    this.#held.addEntry(entry, 1)
    this.#leases.get(entry.lease)?.names.add(entry.name)
  }

  dropEntry(name: string): void {
    const before = this.#entries.get(name)
    if (before === undefined) return
    this.#entries.delete(name)
    this.#held.addEntry(before, -1)
    this.#sorted.splice(this.#position(name), 1)
    this.#leases.get(before.lease)?.names.delete(name)
  }

  clear(): void {
    this.#entries.clear()
    this.#sorted.length = 0
    this.#held = new Holdings()
    this.#leases.clear()
    this.#leasesByOwner.clear()
  }

  #isLive(entry: StoredEntry, nowMs: number): boolean {
    const lease = this.#leases.get(entry.lease)
    return lease === undefined || lease.deadlineMs > nowMs
  }

  /** Index of the first name that is not before `name`. */
  #position(name: string): number {
    let low = 0
    let high = this.#sorted.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#sorted[middle] as string) < name) low = middle + 1
      else high = middle
    }
    return low
  }

  #positionAfter(name: string): number {
    const index = this.#position(name)
    return this.#sorted[index] === name ? index + 1 : index
  }
}

function firstOf(leases: LeaseState[], limit: number): LeaseState[] {
  return leases.sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit)
}
