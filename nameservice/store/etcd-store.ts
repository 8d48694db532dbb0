/**
 * The store of many daemons: the truth is in etcd, and a watch feeds each daemon's copy. Leases are etcd's own and need
 * no sweep; a change is a transaction that compares what the judge has seen; revisions are etcd's. Keys are those of
 * etcd-keys.ts. While etcd is unreachable the copy is answered, marked stale, and changes are refused.
 */
import { randomBytes } from 'node:crypto'
import { Refusal } from '../problem.ts'
import { ChangeLog, HISTORY_DEFAULT, HISTORY_LENGTH_MAX } from './change-log.ts'
import { type EtcdChange, EtcdError, type EtcdGateway, type EtcdOutcome, reasonOf } from './etcd-gateway.ts'
import { EtcdKeys, leaseId, leaseNumber } from './etcd-keys.ts'
import { ChangesUnderway } from './expected-facts.ts'
import { Image } from './image.ts'
import { newEpoch } from './journal.ts'
import { LeaseClock } from './lease-clock.ts'
import { type Store, StoreError, type StoreObserver, type StoreState } from './store.ts'
import type { Facts, NewEntry, StoredChange, StoredEntry, StoredLease } from './stored.ts'

/** How often a change is tried while other daemons change the same name. */
const TRIES_MAX = 16
/** How often etcd is checked: whether it is reachable, and still the same. */
const PULSE_MS = 1000
const RETRY_MS = 250
const RETRY_HINT_MS = 1000
/** How long a change may take to return by the watch before it is answered anyway. */
const ECHO_MS = 1000
/** How long the watch may be silent while it delivers missed changes. */
const CATCH_UP_MS = 10_000

export interface EtcdStoreOptions {
  readonly gateway: EtcdGateway
  readonly prefix: string
  readonly observer: StoreObserver
  readonly history?: number
}

interface Waiting {
  readonly isThere: () => boolean
  readonly resolve: () => void
}

export class EtcdStore implements Store {
  readonly image = new Image(new LeaseClock())
  readonly log: ChangeLog
  /** Of this daemon. What others have under way is known when it is there: limits may be passed by so much. */
  readonly #underway = new ChangesUnderway(this.image)
  readonly #gateway: EtcdGateway
  readonly #keys: EtcdKeys
  readonly #observer: StoreObserver
  #state: StoreState = 'unavailable'
  /** etcd is reachable, but accepts no changes. */
  #isRefused = false
  /** The revision of the copy. */
  #revision = 0
  #endWatch: (() => void) | undefined
  /** Changes that the watch delivers while the copy is still being made. */
  #ahead: EtcdChange[] | undefined
  readonly #waiting = new Set<Waiting>()
  #pulse: NodeJS.Timeout | undefined
  #retry: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ gateway, prefix, observer, history = HISTORY_DEFAULT }: EtcdStoreOptions) {
    this.#gateway = gateway
    this.#keys = new EtcdKeys(prefix)
    this.#observer = observer
    this.log = new ChangeLog(history)
  }

  get state(): StoreState {
    return this.#state
  }

  get isStale(): boolean {
    return this.#state === 'unavailable'
  }

  async open(): Promise<void> {
    try {
      await this.#load(await this.#readEpoch())
    } catch (cause) {
      await this.close()
      throw new StoreError('ERR_STORE_UNAVAILABLE', `etcd cannot be used: ${reasonOf(cause)}`, cause)
    }
    this.#handleReady('etcd is there')
    this.#pulse = setInterval(() => void this.#checkPulse(), PULSE_MS).unref()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#pulse)
    clearTimeout(this.#retry)
    this.#endWatch?.()
    for (const { resolve } of this.#waiting) resolve()
    this.#gateway.close()
  }

  async fetchLease(lease: string): Promise<void> {
    const pair = await this.#ask(() => this.#gateway.get(this.#keys.lease(lease)))
    if (pair !== undefined) await this.#echo(() => this.#revision >= pair.revision)
  }

  async grant(owner: string, ttlMs: number, judge: (facts: Facts) => void): Promise<StoredLease> {
    judge(this.#underway)
    const end = this.#underway.beginLease(owner)
    const granting = this.#ask(async () => {
      // etcd counts in seconds, and has a shortest TTL of its own.
      const { id: number, ttlS } = await this.#gateway.grant(Math.ceil(ttlMs / 1000))
      const lease = { id: leaseId(number), owner, ttlMs: ttlS * 1000 }
      const { revision } = await this.#gateway.transact([], [this.#keys.putLease(lease)])
      await this.#echo(() => this.#revision >= revision)
      return lease
    })
    return await granting.finally(end)
  }

  async keepAlive(id: string): Promise<StoredLease | undefined> {
    const lease = this.image.lease(id)
    if (lease === undefined) return undefined
    // An etcd that accepts no changes still ends leases.
    return (await this.#ask(() => this.#gateway.keepAlive(leaseNumber(id)), this.#isRefused))
      ? lease
      : undefined
  }

  async revoke(id: string): Promise<boolean> {
    return await this.#ask(async () => {
      try {
        await this.#gateway.revoke(leaseNumber(id))
      } catch (error) {
        if (error instanceof EtcdError && error.isNotFound) return false
        throw error
      }
      await this.#echo(() => this.image.lease(id) === undefined)
      return true
    })
  }

  /** The judge decides again whenever another daemon was faster. */
  async update(name: string, judge: (facts: Facts) => NewEntry | undefined): Promise<StoredChange> {
    for (let tried = 0; tried < TRIES_MAX; tried++) {
      const seen = this.image.entry(name)
      const entry = judge(this.#underway)
      const end = entry && this.#underway.beginEntry(entry, seen)
      try {
        const startMs = performance.now()
        const { succeeded, revision, found } = await this.#ask(() => this.#transact(name, seen, entry))
        if (succeeded) {
          await this.#echo(() => this.#revision >= revision)
          this.#observer.handleCommit(1, performance.now() - startMs)
          return { revision, part: 0, name, entry: entry && { ...entry, revision } }
        }
        await this.#echo(() => this.#hasSeen(name, found?.revision ?? 0, entry?.lease))
      } finally {
        end?.()
      }
    }
    throw unavailable('Too many others change this name at the same time.')
  }

  async #transact(
    name: string,
    seen: StoredEntry | undefined,
    entry: NewEntry | undefined,
  ): Promise<EtcdOutcome> {
    const asSeen = { key: this.#keys.name(name), revision: seen?.revision ?? 0 }
    if (entry === undefined) return await this.#gateway.transact([asSeen], [{ delete: asSeen.key }])
    const lease = { key: this.#keys.lease(entry.lease), exists: true } as const
    try {
      return await this.#gateway.transact([asSeen, lease], [this.#keys.putEntry(entry)])
    } catch (error) {
      // Nothing happens between comparison and put, but a lease may end before its keys are removed.
      if (error instanceof EtcdError && error.isNotFound)
        return { succeeded: false, revision: 0, found: undefined }
      throw error
    }
  }

  /** True if the transaction's failure is explained: the name is as found, or the lease has ended. */
  #hasSeen(name: string, revision: number, lease: string | undefined): boolean {
    const hasName = (this.image.entry(name)?.revision ?? 0) === revision
    return hasName && (lease === undefined || this.image.lease(lease) === undefined || revision !== 0)
  }

  /** Reads everything, and the history that etcd still has. */
  async #load(epoch: string): Promise<void> {
    const head = await this.#mark()
    const pairs = await this.#gateway.range(this.#keys.prefix, head)
    const history: EtcdChange[] = []
    let length = 0
    let forgotten = 0
    const oldest = await this.#watchAfter(Math.max(0, head - this.log.capacity), head, change => {
      history.push(change)
      // The log would keep no more of it.
      for (length += lengthOf(change); length > HISTORY_LENGTH_MAX; ) {
        const first = history.shift() as EtcdChange
        length -= lengthOf(first)
        forgotten = first.revision
      }
    })
    this.image.clear()
    // Leases come before names, as l comes before n.
    for (const pair of pairs) this.#apply(pair)
    this.#revision = head
    this.log.reset(
      epoch,
      head,
      Math.max(oldest, forgotten),
      revisionsOf(history).flatMap(group => this.#keys.changesOf(group)),
    )
  }

  /** Continues where the connection was lost. */
  async #resume(): Promise<void> {
    // A change, even without effect: it shows whether etcd accepts any.
    const epoch = await this.#readEpoch()
    if (epoch === this.log.epoch) {
      const head = await this.#mark()
      // etcd was restored from a backup: known revisions stand for other changes from now on.
      if (head <= this.#revision) return await this.#load(await this.#renewEpoch())
      const missed: EtcdChange[] = []
      const oldest = await this.#watchAfter(this.#revision, head, change => missed.push(change))
      if (oldest === this.#revision) return this.#follow(missed)
    }
    await this.#load(epoch)
  }

  async #readEpoch(): Promise<string> {
    const key = this.#keys.epoch
    await this.#gateway.transact([{ key, revision: 0 }], [{ put: key, value: newEpoch(), lease: 0n }], true)
    const pair = await this.#gateway.get(key)
    if (pair === undefined || !/^[0-9a-f]{12}$/.test(pair.value))
      throw new Error('what is in etcd is not ours')
    return pair.value
  }

  /** Another epoch than the log's; the same for all daemons. */
  async #renewEpoch(): Promise<string> {
    const key = this.#keys.epoch
    const { value, revision } = (await this.#gateway.get(key)) ?? { value: undefined, revision: 0 }
    if (value === this.log.epoch)
      await this.#gateway.transact([{ key, revision }], [{ put: key, value: newEpoch(), lease: 0n }])
    return await this.#readEpoch()
  }

  /** A change that the watch will deliver: then every earlier one was delivered too. */
  async #mark(): Promise<number> {
    const value = randomBytes(6).toString('hex')
    const { revision } = await this.#gateway.transact([], [{ put: this.#keys.mark, value, lease: 0n }], true)
    return revision
  }

  /**
   * Watches, and passes changes up to `head` to `handleMissed`; resolves once they are all there. Later ones wait in
   * `#ahead`. Returns the revision after which no change was missed: later than `after` if etcd has forgotten some.
   */
  #watchAfter(after: number, head: number, handleMissed: (change: EtcdChange) => void): Promise<number> {
    this.#endWatch?.()
    this.#ahead = []
    return new Promise((resolve, reject) => {
      let oldest = after
      const fail = (reason: string): void => {
        clearTimeout(timer)
        this.#endWatch?.()
        this.#endWatch = undefined
        reject(new Error(reason))
        this.#lose(reason)
      }
      const timer = setTimeout(() => fail('etcd does not report what has changed'), CATCH_UP_MS)
      const watch = (): void => {
        this.#endWatch = this.#gateway.watch(this.#keys.prefix, oldest + 1, {
          handleChanges: changes => {
            timer.refresh()
            for (const change of changes) if (change.revision <= head) handleMissed(change)
            this.#handleChanges(changes.filter(({ revision }) => revision > head))
            if ((changes.at(-1) as EtcdChange).revision < head) return
            clearTimeout(timer)
            resolve(oldest)
          },
          handleCompacted: revision => {
            if (revision >= head) return fail('etcd has compacted what was not read yet')
            this.#endWatch?.()
            oldest = revision
            watch()
          },
          handleEnd: () => fail('the connection to etcd has ended'),
        })
      }
      watch()
    })
  }

  #handleChanges(changes: readonly EtcdChange[]): void {
    if (this.#ahead !== undefined) this.#ahead.push(...changes)
    else this.#follow(changes)
  }

  /** Applies etcd's changes to the copy and the log. */
  #follow(changes: readonly EtcdChange[]): void {
    for (const group of revisionsOf(changes)) {
      const [{ revision }] = group
      for (const change of group) this.#apply(change)
      this.#revision = revision
      this.log.append(revision, this.#keys.changesOf(group))
    }
    for (const waiting of this.#waiting) if (waiting.isThere()) waiting.resolve()
  }

  #apply(change: EtcdChange): void {
    const { lease, name } = this.#keys.parse(change)
    if (lease !== undefined) {
      if (lease.lease === undefined) this.image.dropLease(lease.id)
      else this.image.putLease(lease.lease, false)
    }
    if (name !== undefined) {
      if (name.entry === undefined) this.image.dropEntry(name.name)
      else this.image.putEntry(name.entry)
    }
  }

  /** Resolves when `isThere` returns true, or after a time-out. */
  #echo(isThere: () => boolean): Promise<void> {
    if (isThere() || this.#isClosed) return Promise.resolve()
    return new Promise(done => {
      const waiting = {
        isThere,
        resolve: () => {
          clearTimeout(timer)
          this.#waiting.delete(waiting)
          done()
        },
      }
      const timer = setTimeout(waiting.resolve, ECHO_MS)
      this.#waiting.add(waiting)
    })
  }

  /** Asks etcd; any failure without an answer means that it is unreachable. `isAlways`: also while unavailable. */
  async #ask<T>(question: () => Promise<T>, isAlways = false): Promise<T> {
    if (this.#isClosed) throw new Refusal('stopping', 'The daemon is stopping.')
    if (this.#state === 'unavailable' && !isAlways) {
      throw unavailable(
        `etcd ${this.#isRefused ? 'takes no changes' : 'cannot be reached'}; look-ups are answered.`,
      )
    }
    try {
      return await question()
    } catch (error) {
      if (error instanceof Refusal) throw error
      if (!(error instanceof EtcdError)) this.#lose(`etcd does not answer: ${reasonOf(error)}`)
      else if (error.isOfAllChanges) this.#lose(`etcd takes no changes: ${reasonOf(error)}`, true)
      throw unavailable('etcd has not taken the change, or has not said so.')
    }
  }

  async #checkPulse(): Promise<void> {
    if (this.#state === 'unavailable') return
    try {
      const pair = await this.#gateway.get(this.#keys.epoch)
      if (pair?.value !== this.log.epoch) this.#lose('what is in etcd is not what it was')
    } catch (error) {
      this.#lose(`etcd does not answer: ${reasonOf(error)}`)
    }
  }

  #lose(reason: string, isRefused = false): void {
    if (this.#state === 'unavailable' || this.#isClosed) return
    this.#isRefused = isRefused
    this.#endWatch?.()
    this.#state = 'unavailable'
    this.#observer.handleState('unavailable', reason)
    this.#reconnectLater()
  }

  #reconnectLater(): void {
    if (this.#isClosed) return
    this.#retry = setTimeout(async () => {
      try {
        await this.#resume()
        this.#handleReady('etcd is back')
      } catch (error) {
        this.#isRefused = error instanceof EtcdError && error.isOfAllChanges
        this.#reconnectLater()
      }
    }, RETRY_MS).unref()
  }

  #handleReady(reason: string): void {
    // It may have ended after it had caught up.
    if (this.#endWatch === undefined) throw new Error('the watch has ended')
    const ahead = this.#ahead ?? []
    this.#ahead = undefined
    this.#follow(ahead)
    this.#state = 'ready'
    this.#observer.handleState('ready', reason)
  }
}

function lengthOf({ key, value = '' }: EtcdChange): number {
  return key.length + value.length
}

/** Changes that belong together, in order. */
function revisionsOf(changes: readonly EtcdChange[]): (readonly [EtcdChange, ...EtcdChange[]])[] {
  const groups: [EtcdChange, ...EtcdChange[]][] = []
  for (const change of changes) {
    const last = groups.at(-1)
    if (last !== undefined && last[0].revision === change.revision) last.push(change)
    else groups.push([change])
  }
  return groups
}

function unavailable(detail: string): Refusal {
  return new Refusal('store-unavailable', detail, { retryAfterMs: RETRY_HINT_MS })
}
