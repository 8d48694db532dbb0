/**
 * The store of one daemon: the truth is here, and a journal keeps it. Requests wait in a queue; a batch of them is
 * judged against a draft, written to the journal in one piece, and only then applied, logged and answered. The next
 * batch gathers meanwhile, so many callers share one write.
 */
import { randomBytes } from 'node:crypto'
import { type Clock, nextTurnOf, realClock, startInBackground, type Timer } from '../../nic/clock.ts'
import { Refusal } from '../problem.ts'
import { ChangeLog, HISTORY_DEFAULT } from './change-log.ts'
import { Draft } from './draft.ts'
import { Image, type LeaseState } from './image.ts'
import type { Batch, Journal, JournalHead, Snapshot } from './journal.ts'
import { LeaseClock } from './lease-clock.ts'
import { type Store, StoreError, type StoreObserver, type StoreState } from './store.ts'
import type { Facts, NewEntry, StoredChange, StoredLease } from './stored.ts'

/** Requests that share one write. */
const BATCH_MAX = 512
/** Changes from which on a batch takes no further request: the end of one lease may be a thousand changes. */
const BATCH_CHANGES_MAX = 4096
/** Requests that wait for their batch. */
const QUEUE_MAX = 8192
/** From one write to the next, at least, while requests come faster than they are written: each costs a flush of the disk. */
const WRITE_INTERVAL_MS = 3
const EXPIRY_TICK_MS = 100
const RETRY_MS = 500
const RETRY_HINT_MS = 1000

export interface LocalStoreOptions {
  readonly journal: Journal
  readonly observer: StoreObserver
  /** Changes that are kept for watchers. */
  readonly history?: number
  readonly leaseClock?: LeaseClock
  /** Time and ids of the simulator. */
  readonly clock?: Clock
  readonly newId?: () => string
  /** What to do with a damaged journal: begin a new one, or give up. */
  readonly onCorrupt?: 'quarantine' | 'refuse'
}

interface Task {
  /** Judges, and drafts the result. May throw a refusal, having drafted nothing. */
  run(draft: Draft): void
  succeed(): void
  fail(error: unknown): void
}

export class LocalStore implements Store {
  readonly image: Image
  readonly log: ChangeLog
  readonly isStale = false
  readonly #journal: Journal
  readonly #observer: StoreObserver
  readonly #onCorrupt: 'quarantine' | 'refuse'
  readonly #clock: Clock
  readonly #newId: () => string
  #state: StoreState = 'ready'
  #queue: Task[] = []
  /** The journal has every change after this revision. */
  #keptAfter = 0
  #committing: Promise<void> | undefined
  /** Leases whose end is being written. */
  readonly #ending = new Set<string>()
  #ticker: Timer | undefined
  #retry: Timer | undefined
  #recovering: Promise<void> | undefined
  #closed = false

  constructor({
    journal,
    observer,
    history = HISTORY_DEFAULT,
    leaseClock,
    clock = realClock,
    newId = () => randomBytes(8).toString('hex'),
    onCorrupt,
  }: LocalStoreOptions) {
    this.#journal = journal
    this.#observer = observer
    this.#onCorrupt = onCorrupt ?? 'quarantine'
    this.#clock = clock
    this.#newId = newId
    this.image = new Image(leaseClock ?? new LeaseClock(clock.now))
    this.log = new ChangeLog(history)
  }

  get state(): StoreState {
    return this.#state
  }

  async open(): Promise<void> {
    const { head, leases, entries, changes } = await this.#load()
    // No client could keep a lease alive while the daemon was down: each has its whole TTL from now on.
    for (const lease of leases) this.image.putLease(lease, true)
    for (const entry of entries) this.image.putEntry(entry)
    this.#keptAfter = head.oldestRevision
    this.log.reset(head.epoch, head.revision, head.oldestRevision, changes)
    this.#tick()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#clock.clearTimeout(this.#ticker)
    this.#clock.clearTimeout(this.#retry)
    await this.#committing
    await this.#recovering
    await this.#journal.close()
  }

  /** There is no other daemon. */
  async fetchLease(): Promise<void> {}

  async grant(owner: string, ttlMs: number, judge: (facts: Facts) => void): Promise<StoredLease> {
    const lease = { id: this.#newId(), owner, ttlMs }
    await this.#submit(draft => {
      judge(draft)
      draft.grant(lease)
    })
    return lease
  }

  async keepAlive(id: string): Promise<StoredLease | undefined> {
    const lease = this.image.lease(id)
    if (lease === undefined || this.#ending.has(id)) return undefined
    this.image.renew(lease)
    return lease
  }

  async revoke(id: string): Promise<boolean> {
    let wasThere = false
    await this.#submit(draft => {
      wasThere = draft.lease(id) !== undefined
      this.#end(draft, draft.storedLease(id))
    })
    return wasThere
  }

  async update(name: string, judge: (facts: Facts) => NewEntry | undefined): Promise<StoredChange> {
    let change: StoredChange | undefined
    await this.#submit(draft => {
      const entry = judge(draft)
      change = entry === undefined ? draft.remove(name) : draft.put(entry)
    })
    return change as StoredChange
  }

  async #load(): Promise<Snapshot> {
    try {
      return await this.#journal.open()
    } catch (error) {
      const isCorrupt = error instanceof StoreError && error.code === 'ERR_STORE_CORRUPT'
      if (!isCorrupt || this.#onCorrupt === 'refuse') throw error
      await this.#journal.quarantine()
      this.#observer.handleQuarantine(error.message)
      return await this.#journal.open()
    }
  }

  #submit(run: (draft: Draft) => void): Promise<void> {
    if (this.#closed) return Promise.reject(new Refusal('stopping', 'The daemon is stopping.'))
    if (this.#state === 'unavailable' || this.#queue.length >= QUEUE_MAX) return Promise.reject(unavailable())
    return new Promise((succeed, fail) => {
      this.#queue.push({ run, succeed, fail })
      this.#committing ??= this.#commitAll()
    })
  }

  async #commitAll(): Promise<void> {
    // In the next iteration, so that requests that arrive together are written together.
    await nextTurnOf(this.#clock)
    while (this.#queue.length > 0) {
      const startMs = this.#clock.now()
      const isBusy = this.#queue.length > 1
      await this.#commitSome()
      const restMs = WRITE_INTERVAL_MS - (this.#clock.now() - startMs)
      if (isBusy && restMs > 0) await new Promise<void>(resolve => this.#clock.setTimeout(resolve, restMs))
    }
    this.#committing = undefined
  }

  async #commitSome(): Promise<void> {
    const draft = new Draft(this.image, this.log.revision)
    const judged: Task[] = []
    let count = 0
    for (const task of this.#queue) {
      if (count === BATCH_MAX || draft.changes.length >= BATCH_CHANGES_MAX) break
      count += 1
      try {
        task.run(draft)
        judged.push(task)
      } catch (refusal) {
        task.fail(refusal)
      }
    }
    this.#queue.splice(0, count)
    try {
      if (!draft.isEmpty) await this.#write(draft)
    } catch (error) {
      this.#handleFailure(draft, error as Error)
      for (const task of judged) task.fail(unavailable())
      return
    }
    for (const task of judged) task.succeed()
  }

  async #write(draft: Draft): Promise<void> {
    const startMs = this.#clock.now()
    const batch = this.#batch(draft)
    await this.#journal.write(batch)
    this.#keptAfter = batch.head.oldestRevision
    draft.applyTo(this.image)
    for (const id of draft.leases.keys()) this.#ending.delete(id)
    if (draft.changes.length > 0) this.log.append(draft.revision, draft.changes)
    this.#observer.handleCommit(draft.changes.length, this.#clock.now() - startMs)
  }

  #batch({ entries, leases, changes, revision, nameCount, leaseCount }: Draft): Batch {
    // Every revision here is one change. The log may have dropped more of them, because they were long.
    const oldestRevision = Math.max(this.#keptAfter, revision - this.log.capacity, this.log.oldestRevision)
    const head: JournalHead = { epoch: this.log.epoch, revision, oldestRevision, nameCount, leaseCount }
    return { head, entries, leases, changes: changes.filter(c => c.revision > oldestRevision) }
  }

  #end(draft: Draft, lease: LeaseState | StoredLease | undefined): void {
    if (lease === undefined) return
    draft.end(lease)
    this.#ending.add(lease.id)
  }

  #tick(): void {
    const tick = (): void => {
      this.#tick()
      this.#expire()
    }
    this.#ticker = startInBackground(this.#clock, tick, EXPIRY_TICK_MS)
  }

  #expire(): void {
    // Read always: a clock without readings assumes that the daemon stood still.
    const ids = this.image.expiredLeases().filter(id => !this.#ending.has(id))
    if (ids.length === 0 || this.#state === 'unavailable') return
    const ends = ids.map(async id => {
      this.#ending.add(id)
      await this.#submit(draft => this.#end(draft, draft.storedLease(id)))
      return id
    })
    Promise.allSettled(ends).then(results => {
      const count = results.filter(({ status }) => status === 'fulfilled').length
      if (count > 0) this.#observer.handleExpired(count)
      if (count < ids.length) for (const id of ids) this.#ending.delete(id)
    })
  }

  #handleFailure(draft: Draft, error: Error): void {
    this.#ending.clear()
    this.#enter('unavailable', error.message)
    for (const task of this.#queue.splice(0)) task.fail(unavailable())
    this.#recoverLater(draft)
  }

  /** The journal has refused the draft, but may contain it nevertheless. */
  #recoverLater(draft: Draft): void {
    if (this.#closed) return
    const recover = (): void => {
      this.#recovering = this.#recover(draft).catch(() => this.#recoverLater(draft))
    }
    this.#retry = startInBackground(this.#clock, recover, RETRY_MS)
  }

  async #recover(draft: Draft): Promise<void> {
    await this.#journal.reopen()
    const undo = this.#undo(draft)
    await this.#journal.write(undo)
    this.#keptAfter = undo.head.oldestRevision
    this.#enter('ready', 'the store takes changes again')
  }

  /** Rewrites everything that the doubtful batch touched as the image has it. */
  #undo(draft: Draft): Batch {
    const { image, log } = this
    const batch = this.#batch(draft)
    // Changes that the batch dropped are gone, or are removed now.
    const oldestRevision = Math.min(batch.head.oldestRevision, log.revision)
    const { revision, epoch } = log
    return {
      head: { epoch, revision, oldestRevision, nameCount: image.nameCount, leaseCount: image.leaseCount },
      leases: new Map([...draft.leases.keys()].map(id => [id, image.storedLease(id)])),
      entries: new Map([...draft.entries.keys()].map(name => [name, image.storedEntry(name)])),
      changes: [],
    }
  }

  #enter(state: StoreState, reason: string): void {
    if (state === this.#state) return
    this.#state = state
    this.#observer.handleState(state, reason)
  }
}

function unavailable(): Refusal {
  return new Refusal('store-unavailable', 'The store takes no changes now; look-ups are answered.', {
    retryAfterMs: RETRY_HINT_MS,
  })
}
