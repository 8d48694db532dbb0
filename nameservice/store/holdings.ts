/** How much is held, in all and by owner: names, characters of their records, leases; and names by lease. */
import type { NewEntry, StoredLease } from './stored.ts'

interface Held {
  names: number
  recordsLength: number
  leases: number
}

const NOTHING: Readonly<Held> = { names: 0, recordsLength: 0, leases: 0 }

/** Also differences, which may be negative. */
export class Holdings {
  readonly all: Held = { ...NOTHING }
  readonly #byOwner = new Map<string, Held>()
  readonly #namesByLease = new Map<string, number>()

  of(owner: string): Readonly<Held> {
    return this.#byOwner.get(owner) ?? NOTHING
  }

  namesUnder(lease: string): number {
    return this.#namesByLease.get(lease) ?? 0
  }

  /** `sign`: 1 to add, -1 to take away. */
  addEntry({ owner, lease, record }: NewEntry, sign: 1 | -1): void {
    const held = this.#of(owner)
    for (const sum of [this.all, held]) {
      sum.names += sign
      sum.recordsLength += sign * record.length
    }
    this.#forgetIfEmpty(owner, held)
    const left = this.namesUnder(lease) + sign
    if (left === 0) this.#namesByLease.delete(lease)
    else this.#namesByLease.set(lease, left)
  }

  addLease({ owner }: Pick<StoredLease, 'owner'>, sign: 1 | -1): void {
    const held = this.#of(owner)
    this.all.leases += sign
    held.leases += sign
    this.#forgetIfEmpty(owner, held)
  }

  #of(owner: string): Held {
    let held = this.#byOwner.get(owner)
    if (held === undefined) {
      held = { ...NOTHING }
      this.#byOwner.set(owner, held)
    }
    return held
  }

  /** Owners come and go. */
  #forgetIfEmpty(owner: string, { names, recordsLength, leases }: Held): void {
    if (names === 0 && recordsLength === 0 && leases === 0) this.#byOwner.delete(owner)
  }
}
