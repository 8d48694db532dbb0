/** The facts of the image together with changes that are decided and not there yet, so that limits hold for all of them. */
import { Holdings } from './holdings.ts'
import type { Image } from './image.ts'
import type { Facts, NewEntry, StoredEntry, StoredLease } from './stored.ts'

export class ExpectedFacts implements Facts {
  protected readonly image: Image
  /** What is to come, as a difference. */
  protected readonly more = new Holdings()

  constructor(image: Image) {
    this.image = image
  }

  get nameCount(): number {
    return this.image.nameCount + this.more.all.names
  }

  get leaseCount(): number {
    return this.image.leaseCount + this.more.all.leases
  }

  get recordsLength(): number {
    return this.image.recordsLength + this.more.all.recordsLength
  }

  entry(name: string): StoredEntry | undefined {
    return this.image.entry(name)
  }

  lease(id: string): StoredLease | undefined {
    return this.image.lease(id)
  }

  nameCountOf(lease: string): number {
    return this.image.nameCountOf(lease) + this.more.namesUnder(lease)
  }

  leaseCountOf(owner: string): number {
    return this.image.leaseCountOf(owner) + this.more.of(owner).leases
  }

  nameCountOfOwner(owner: string): number {
    return this.image.nameCountOfOwner(owner) + this.more.of(owner).names
  }

  recordsLengthOf(owner: string): number {
    return this.image.recordsLengthOf(owner) + this.more.of(owner).recordsLength
  }
}

/** Changes that another component makes, and that the image shows later: they count from their request on. */
export class ChangesUnderway extends ExpectedFacts {
  /** `seen`: what the name stands for so far. Returns how to end it. */
  beginEntry(entry: NewEntry, seen: StoredEntry | undefined): () => void {
    this.more.addEntry(entry, 1)
    if (seen !== undefined) this.more.addEntry(seen, -1)
    return () => {
      this.more.addEntry(entry, -1)
      if (seen !== undefined) this.more.addEntry(seen, 1)
    }
  }

  beginLease(owner: string): () => void {
    this.more.addLease({ owner }, 1)
    return () => this.more.addLease({ owner }, -1)
  }
}
