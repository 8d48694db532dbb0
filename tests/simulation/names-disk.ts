/**
 * The daemon's disk: what a journal has written outlives the daemon. A write takes a while; a kill before its end loses it
 * or not, and a full disk refuses it, perhaps after all of it is there.
 */
import type { Batch, Journal, JournalHead, Snapshot } from '../../nameservice/store/journal.ts'
import { StoreError } from '../../nameservice/store/store.ts'
import type { StoredChange, StoredEntry, StoredLease } from '../../nameservice/store/stored.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedHost, SimulatedNetwork } from '../../nic/simulated/index.ts'

const WRITE_US_MAX = 3000
/** Longer than a write of the daemon before. */
const OPEN_US = 5000
const LOCK_RETRY_US = 50_000
const FULL_RATE = 0.02
const EPOCH_LENGTH = 12
/** Of one store. */
const REVISIONS_MAX = 2 ** 32

export class NamesDisk {
  /** Writes fail at times. */
  isFaulty = true
  /** Writes that have failed. */
  failures = 0
  /** Each beginning of an empty store. */
  beginnings = 0
  /** The order of all entries that were written, by what is unique: name, lease, revision. */
  readonly #written = new Map<string, number>()
  #head: JournalHead | undefined
  readonly #leases = new Map<string, StoredLease>()
  readonly #entries = new Map<string, StoredEntry>()
  #changes: readonly StoredChange[] = []
  #holder: SimulatedHost | undefined
  readonly #network: SimulatedNetwork

  constructor(network: SimulatedNetwork) {
    this.#network = network
  }

  /** All is lost, as with a new machine. */
  wipe(): void {
    this.#head = undefined
    this.#leases.clear()
    this.#entries.clear()
    this.#changes = []
  }

  /** The place of an entry among all that were ever written; undefined if it never was. */
  orderOf(name: string, lease: string, revision: number): number | undefined {
    return this.#written.get(keyOf(name, lease, revision))
  }

  /** The journal of a daemon on `host`. */
  journalOf(host: SimulatedHost, random: FaultRandom): Journal {
    const after = (us: number): Promise<void> =>
      new Promise(resolve => {
        host.post(us, () => {
          this.#network.timeline.hasSettled = true
          resolve()
        })
      })
    return {
      open: async () => {
        while (this.#holder !== undefined && this.#holder.state !== 'dead') await after(LOCK_RETRY_US)
        this.#holder = host
        await after(OPEN_US)
        return this.#load()
      },
      quarantine: async () => {
        throw new Error('the disk is not damaged')
      },
      write: batch => this.#write(host, random, batch, after),
      reopen: () => after(OPEN_US),
      close: async () => {
        await after(0)
        this.#holder = undefined
      },
    }
  }

  #load(): Snapshot {
    if (this.#head === undefined) {
      this.beginnings++
      const epoch = this.#network.newIdentity().toString('hex').slice(-EPOCH_LENGTH)
      this.#head = { epoch, revision: 0, oldestRevision: 0, nameCount: 0, leaseCount: 0 }
    }
    return {
      head: this.#head,
      leases: [...this.#leases.values()],
      entries: [...this.#entries.values()],
      changes: this.#changes,
    }
  }

  async #write(
    host: SimulatedHost,
    random: FaultRandom,
    batch: Batch,
    after: (us: number) => Promise<void>,
  ): Promise<void> {
    const us = random.within(20, WRITE_US_MAX)
    const isFull = this.isFaulty && random.chance(FULL_RATE)
    const isThere = !isFull || random.chance(0.5)
    const { timeline } = this.#network
    timeline.schedule(host.nowUs + us / 2, () => {
      const isCut = host.state === 'dead'
      if (isThere && !(isCut && random.chance(0.5))) this.#apply(batch)
    })
    await after(us)
    if (!isFull) return
    this.failures++
    throw new StoreError('ERR_STORE_UNAVAILABLE', 'the disk is full')
  }

  #apply({ head, leases, entries, changes }: Batch): void {
    this.#head = head
    for (const [id, lease] of leases) put(this.#leases, id, lease)
    for (const [name, entry] of entries) put(this.#entries, name, entry)
    const kept = this.#changes.filter(
      ({ revision }) => revision > head.oldestRevision && revision <= head.revision - changes.length,
    )
    this.#changes = [...kept, ...changes]
    // Of a batch that is longer than the history the first changes are not kept.
    for (const entry of entries.values()) this.#note(entry)
    for (const { entry } of changes) this.#note(entry)
  }

  #note(entry: StoredEntry | undefined): void {
    if (entry === undefined) return
    this.#written.set(
      keyOf(entry.name, entry.lease, entry.revision),
      this.beginnings * REVISIONS_MAX + entry.revision,
    )
  }
}

function put<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key)
  else map.set(key, value)
}

function keyOf(name: string, lease: string, revision: number): string {
  return `${name} ${lease} ${revision}`
}
