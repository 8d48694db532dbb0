/**
 * Keeps a client's names registered: one lease for all of them, kept alive. Whatever happens to the daemon, each name is
 * registered again as soon as possible. All of it runs in the background and keeps no program alive.
 */
import { type Clock, startInBackground, type Timer } from '../../nic/clock.ts'
import { PROBLEM_URN } from '../problem.ts'
import type { Change, Entry, Lease } from '../record.ts'
import type { Cursor } from '../store/change-log.ts'
import { Backoff } from './backoff.ts'
import { isPassing, NameError } from './errors.ts'
import type { NameApi, RegisterAnswer } from './name-api.ts'
import type { NameListener, NameWatch } from './name-watch.ts'
import type { OwnTime } from './own-time.ts'
import type { NewRegistration, RegistrationOptions } from './registration.ts'
import { Registration } from './registration.ts'

/** Own names that are watched: enough to know at once when the daemon is back. */
const OWN_WATCHED_MAX = 64
/** Names that are registered at the same time. */
const PARALLEL_MAX = 16
/** Keep-alives in one TTL of the lease. */
const KEEP_ALIVES = 3
/** How long a takeover waits before it asks again. */
const TAKEOVER_RETRY_MS = 1000
const GOODBYE_MS = 1000
/** Released names that are remembered. */
const RELEASED_MAX = 64
/** A time-out longer than any program lives. */
const EVER_MS = 0x7fffffff
const NO_SUCH_LEASE: string = `${PROBLEM_URN}no-such-lease`
const NAME_HELD: string = `${PROBLEM_URN}name-held`

export class Session implements NameListener {
  readonly #api: NameApi
  readonly #watch: NameWatch
  readonly #ttlMs: number
  readonly #clock: Clock
  readonly #registrations = new Map<string, Registration>()
  /** Takeovers that wait for another owner's lease to end. */
  readonly #waiting = new Set<Registration>()
  readonly #backoff: Backoff
  /** Names that were released under the lease, the latest last: without an answer the daemon may have them still. */
  readonly #released = new Set<string>()
  /** Own names whose changes are watched. */
  readonly #watched = new Set<string>()
  #lease: Lease | undefined
  #keptAtMs = 0
  /** History in which the lease was last known to exist. */
  #epoch: string | undefined
  #keeper: Timer | undefined
  #retry: Timer | undefined
  #settling: Promise<void> | undefined
  #isClosed = false

  constructor(api: NameApi, watch: NameWatch, ttlMs: number, { clock, random }: OwnTime) {
    this.#api = api
    this.#clock = clock
    this.#backoff = new Backoff(random)
    this.#watch = watch
    this.#ttlMs = ttlMs
    watch.listen(this)
  }

  register(wanted: NewRegistration, options: RegistrationOptions): Registration {
    const { name } = wanted
    if (this.#isClosed) throw closedError()
    if (this.#registrations.has(name)) {
      throw new NameError('ERR_NAMES_ARGUMENT', `${name} is registered by this client already`)
    }
    const registration = new Registration(wanted, options, closing => this.#close(closing))
    this.#registrations.set(name, registration)
    this.#settle()
    return registration
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#clock.clearTimeout(this.#keeper)
    this.#clock.clearTimeout(this.#retry)
    for (const registration of this.#registrations.values()) registration.handleClosed(closedError())
    this.#registrations.clear()
    // Background work goes on; a program that waits for its end must not end before.
    const alive = this.#clock.setTimeout(() => {}, EVER_MS)
    try {
      await this.#settling
      await this.#endLease()
    } finally {
      this.#clock.clearTimeout(alive)
    }
  }

  isInterestedIn(name: string): boolean {
    return this.#registrations.has(name)
  }

  /** A daemon is reachable, for the first time or another one. */
  handleUp(epoch: string): void {
    if (this.#epoch !== undefined && this.#epoch !== epoch) this.#loseLease()
    this.#epoch = epoch
    this.#backoff.reset()
    this.#clock.clearTimeout(this.#retry)
    this.#retry = undefined
    if (this.#lease !== undefined) this.#keepAlive()
    this.#settle()
  }

  /** Changes meanwhile are unknown: each name is looked up, and missing ones are registered again. */
  handleLost(): void {
    for (const registration of this.#registrations.values())
      if (registration.state === 'registered') registration.handlePending()
  }

  /** No event announces the daemon: pending names are tried now. */
  handleRefused(): void {
    this.#settle()
  }

  handleChange(change: Change): void {
    const registration = this.#registrations.get(change.name)
    if (registration === undefined || !['registered', 'lost'].includes(registration.state)) return
    const { type, ...entry } = change
    // A release and a registration of ours that arrived late may remove the name and bring it back.
    if ('lease' in entry && entry.lease === this.#lease?.id) registration.handleRegistered(entry)
    else if (registration.state === 'lost') return
    else if (type === 'put') registration.handleLost()
    else this.#findOutWhy(registration)
  }

  /** A name of ours is gone: with its lease, or removed by another owner. */
  async #findOutWhy(registration: Registration): Promise<void> {
    const { entry } = registration
    const isKept = await this.#keepAlive()
    if (this.#lease === undefined || registration.state !== 'registered' || registration.entry !== entry)
      return
    if (isKept) return registration.handleLost()
    // The reason is unknown.
    registration.handlePending()
    this.#settle()
  }

  /**
   * Not all names are watched, but the lease reports their number: if it is lower than ours, each is looked up; if it is
   * higher, the daemon has not got a release, or got a registration behind it.
   */
  async #compareNames({ id, names }: Lease): Promise<void> {
    const ours = [...this.#registrations.values()].filter(({ state }) => state === 'registered')
    if (names > ours.length)
      for (const name of this.#released) if (!this.#registrations.has(name)) void this.#deregister(name, id)
    if (names >= ours.length) return
    for (const registration of ours) {
      const { name, entry: known } = registration
      if (known === undefined) continue
      const { entry, cursor, isStale } = await this.#api.lookUp(name, { isBackground: true })
      const isNews = !isStale && cursor.epoch === this.#epoch && cursor.revision >= known.revision
      if (!isNews || this.#lease?.id !== id || registration.entry !== known) continue
      if (registration.state === 'registered' && entry?.lease !== id) registration.handleLost()
    }
  }

  /** Registers pending names, round by round, until none is left or the daemon does not answer. */
  #settle(): void {
    if (this.#settling !== undefined || this.#isClosed || this.#retry !== undefined) return
    this.#settling = this.#settleAll().then(() => {
      this.#settling = undefined
      if (this.#registrations.size === 0) return this.#endLease()
    })
  }

  async #settleAll(): Promise<void> {
    for (let pending = this.#pending(); pending.length > 0; pending = this.#pending()) {
      try {
        const lease = await this.#haveLease()
        await Promise.all(pending.slice(0, PARALLEL_MAX).map(one => this.#registerOne(one, lease.id)))
      } catch (error) {
        if (error instanceof NameError && !isPassing(error))
          for (const one of pending) one.handleRefused(error)
        else this.#settleLater(this.#backoff.nextMs())
        for (const one of pending) one.handleTried()
        return
      }
    }
  }

  #pending(): Registration[] {
    return this.#isClosed
      ? []
      : [...this.#registrations.values()].filter(one => one.state === 'pending' && !this.#waiting.has(one))
  }

  async #registerOne(registration: Registration, lease: string): Promise<void> {
    const { name } = registration
    // It was closed while the lease was granted.
    if (registration.state !== 'pending') return
    try {
      const found = await this.#findOwn(registration, lease)
      if (found === undefined && hasClosed(registration)) return
      const { entry, cursor } = found ?? (await this.#put(registration, lease))
      this.#epoch = cursor.epoch
      if (hasClosed(registration)) return await this.#deregister(name, lease)
      if (entry.lease !== lease) return registration.handleLost()
      registration.handleRegistered(entry)
      this.#watchOwn(name, cursor, entry)
    } catch (error) {
      // It may be registered although no answer came.
      if (hasClosed(registration) && isPassing(error)) await this.#deregister(name, lease)
      this.#handleRefusal(registration, error)
    }
  }

  /** It was registered before under this lease. If it is still there, nothing is reported. */
  async #findOwn({ name, entry }: Registration, lease: string): Promise<RegisterAnswer | undefined> {
    if (entry?.lease !== lease) return undefined
    const { isStale, ...found } = await this.#api.lookUp(name, { isBackground: true })
    return isStale || found.entry === undefined ? undefined : { entry: found.entry, cursor: found.cursor }
  }

  #put({ name, record, options }: Registration, lease: string): Promise<RegisterAnswer> {
    const { takeover, ownerKey } = options
    return this.#api.register(name, lease, record, {
      isBackground: true,
      ...(takeover === undefined ? {} : { takeover }),
      ...(ownerKey === undefined ? {} : { ownerKey }),
    })
  }

  #watchOwn(name: string, cursor: Cursor, entry: Entry): void {
    if (!this.#watched.has(name) && this.#watched.size >= OWN_WATCHED_MAX) return
    this.#watched.add(name)
    this.#watch.add(name, cursor, entry)
  }

  /** Another name takes its place, so that one is watched as long as there are names. */
  #unwatchOwn(name: string): void {
    this.#watch.remove(name)
    if (!this.#watched.delete(name) || this.#epoch === undefined) return
    for (const { name: other, entry, state } of this.#registrations.values()) {
      if (entry === undefined || state !== 'registered' || this.#watched.has(other)) continue
      return this.#watchOwn(other, { epoch: this.#epoch, revision: entry.revision, part: 0 }, entry)
    }
  }

  /** Throws errors that concern all names. */
  #handleRefusal(registration: Registration, error: unknown): void {
    if (isPassing(error) || !(error instanceof NameError)) throw error
    const { problem } = error
    if (problem?.type === NO_SUCH_LEASE) return this.#loseLease()
    if (hasClosed(registration)) return
    if (problem?.type !== NAME_HELD || !registration.options.takeover)
      return registration.handleRefused(error)
    registration.handlePending(problem)
    registration.handleTried()
    this.#waiting.add(registration)
    const waitMs = Math.min(problem.retryAfterMs ?? TAKEOVER_RETRY_MS, TAKEOVER_RETRY_MS)
    const goOn = (): void => {
      this.#waiting.delete(registration)
      this.#settle()
    }
    startInBackground(this.#clock, goOn, waitMs)
  }

  #settleLater(delayMs: number): void {
    if (this.#isClosed) return
    const goOn = (): void => {
      this.#retry = undefined
      this.#settle()
    }
    this.#retry = startInBackground(this.#clock, goOn, delayMs)
  }

  async #haveLease(): Promise<Lease> {
    if (this.#lease !== undefined) return this.#lease
    const lease = await this.#api.grant(this.#ttlMs, { isBackground: true })
    this.#lease = lease
    this.#keptAtMs = this.#clock.now()
    this.#keepAliveLater(lease.ttlMs / KEEP_ALIVES)
    return lease
  }

  #keepAliveLater(delayMs: number): void {
    this.#clock.clearTimeout(this.#keeper)
    if (this.#isClosed) return
    this.#keeper = startInBackground(this.#clock, () => void this.#keepAlive(), delayMs)
  }

  /** True once the daemon has confirmed the lease. */
  async #keepAlive(): Promise<boolean> {
    const { id, ttlMs } = this.#lease ?? {}
    if (id === undefined || ttlMs === undefined) return false
    try {
      const kept = await this.#api.keepAlive(id, { isBackground: true, timeoutMs: ttlMs / KEEP_ALIVES })
      this.#keptAtMs = this.#clock.now()
      this.#keepAliveLater(ttlMs / KEEP_ALIVES)
      // Without an answer, the next keep-alive decides.
      void this.#compareNames(kept).catch(() => {})
      return true
    } catch (error) {
      if (this.#lease?.id === id && this.#hasEnded(error, ttlMs)) {
        this.#loseLease()
        this.#settle()
      } else this.#keepAliveLater(this.#backoff.nextMs())
      return false
    }
  }

  /** True if the lease is gone. Another refusal, such as a token missing from a file for a moment, may pass. */
  #hasEnded(error: unknown, ttlMs: number): boolean {
    if (!(error instanceof NameError) || isPassing(error)) return false
    return error.problem?.type === NO_SUCH_LEASE || this.#clock.now() - this.#keptAtMs >= ttlMs
  }

  /** All names are gone with it. */
  #loseLease(): void {
    this.#lease = undefined
    this.#released.clear()
    this.#clock.clearTimeout(this.#keeper)
    for (const registration of this.#registrations.values()) {
      if (registration.state === 'registered') registration.handlePending()
    }
  }

  async #close(registration: Registration): Promise<void> {
    const { name, state, entry } = registration
    if (this.#registrations.get(name) !== registration) return
    this.#registrations.delete(name)
    this.#waiting.delete(registration)
    this.#unwatchOwn(name)
    registration.handleClosed(closedError())
    const lease = this.#lease
    this.#noteReleased(name)
    // A name to be registered again may still be there.
    const mayBeThere = state === 'registered' || (state === 'pending' && entry !== undefined)
    if (mayBeThere && lease !== undefined) await this.#deregister(name, lease.id)
    if (this.#registrations.size === 0 && this.#settling === undefined) await this.#endLease()
  }

  async #deregister(name: string, lease: string): Promise<void> {
    await this.#api.deregister(name, lease, { timeoutMs: GOODBYE_MS }).catch(() => {})
  }

  #noteReleased(name: string): void {
    this.#released.delete(name)
    this.#released.add(name)
    if (this.#released.size <= RELEASED_MAX) return
    const [oldest] = this.#released
    this.#released.delete(oldest as string)
  }

  async #endLease(): Promise<void> {
    const lease = this.#lease
    this.#lease = undefined
    this.#released.clear()
    this.#clock.clearTimeout(this.#keeper)
    if (lease !== undefined) await this.#api.revoke(lease.id, { timeoutMs: GOODBYE_MS }).catch(() => {})
  }
}

/** Checked again after waits, in which the state may have changed. */
function hasClosed({ state }: Registration): boolean {
  return state === 'closed'
}

function closedError(): NameError {
  return new NameError('ERR_NAMES_CLOSED', 'it was closed')
}
