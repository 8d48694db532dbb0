/**
 * Look-ups with a cache. Names that were looked up are watched, so cached entries are current without a question. While
 * the daemon is unreachable the cached entry is answered, marked stale.
 */
import type { Clock, Timer } from '../../nic/clock.ts'
import type { Change, Entry } from '../record.ts'
import { Backoff } from './backoff.ts'
import { isPassing } from './errors.ts'
import type { NameApi } from './name-api.ts'
import type { NameListener, NameWatch } from './name-watch.ts'
import type { OwnTime } from './own-time.ts'

/** Cached names; the least recently used goes first. */
export const REMEMBERED_MAX = 192

/** `found` or `absent`: the daemon's answer, or its last one (`stale`). */
export type Lookup =
  | { readonly status: 'found'; readonly entry: Entry; readonly stale: boolean }
  | { readonly status: 'absent'; readonly entry?: undefined; readonly stale: boolean }
  | { readonly status: 'unavailable'; readonly entry?: undefined; readonly stale: true }

const UNAVAILABLE: Lookup = { status: 'unavailable', stale: true }

export class Lookups implements NameListener {
  readonly #api: NameApi
  readonly #watch: NameWatch
  /** Undefined: the name is not registered. Least recently used first. */
  readonly #known = new Map<string, Entry | undefined>()
  readonly #underway = new Map<string, Promise<Lookup>>()
  readonly #clock: Clock
  readonly #backoff: Backoff
  /** Until then the daemon counts as unreachable without a new try. */
  #silentUntilMs = 0

  constructor(api: NameApi, watch: NameWatch, { clock, random }: OwnTime) {
    this.#api = api
    this.#clock = clock
    this.#backoff = new Backoff(random)
    this.#watch = watch
    watch.listen(this)
  }

  isInterestedIn(name: string): boolean {
    return this.#known.has(name)
  }

  /** The cached answer; undefined if there is none. */
  peek(name: string): Lookup | undefined {
    if (!this.#known.has(name)) return undefined
    return describe(this.#known.get(name), !this.#watch.isCurrent(name))
  }

  /** Answers within `timeoutMs`; the question goes on in the background, for the next look-up. */
  async lookUp(name: string, timeoutMs: number): Promise<Lookup> {
    const known = this.peek(name)
    if (known?.stale === false) {
      this.#remember(name, known.entry)
      return known
    }
    if (this.#clock.now() < this.#silentUntilMs) return known ?? UNAVAILABLE
    const asked = this.#ask(name)
    let timer: Timer | undefined
    const late = new Promise<Lookup>(resolve => {
      timer = this.#clock.setTimeout(() => resolve(known ?? UNAVAILABLE), timeoutMs)
    })
    const answer = await Promise.race([asked, late]).finally(() => this.#clock.clearTimeout(timer))
    return answer.status === 'unavailable' ? (known ?? answer) : answer
  }

  handleChange(change: Change): void {
    if (!this.#known.has(change.name)) return
    if (change.type === 'delete') this.#known.set(change.name, undefined)
    else {
      const { type: _, ...entry } = change
      this.#known.set(change.name, entry)
    }
  }

  /** The daemon is reachable. */
  handleUp(): void {
    this.#silentUntilMs = 0
    this.#backoff.reset()
  }

  handleLost(): void {}
  handleRefused(): void {}

  #ask(name: string): Promise<Lookup> {
    const underway = this.#underway.get(name)
    if (underway !== undefined) return underway
    const asked = this.#askDaemon(name).finally(() => this.#underway.delete(name))
    // The caller may already have its answer.
    asked.catch(() => {})
    this.#underway.set(name, asked)
    return asked
  }

  /** Rejects if the daemon refuses; not if it is unreachable. */
  async #askDaemon(name: string): Promise<Lookup> {
    try {
      const { entry, cursor, isStale } = await this.#api.lookUp(name, { isBackground: true })
      this.handleUp()
      if (isStale || this.#watch.add(name, cursor, entry)) this.#remember(name, entry)
      // A later event may have updated the cache meanwhile; it wins.
      return describe(this.#known.has(name) ? this.#known.get(name) : entry, isStale)
    } catch (error) {
      if (!isPassing(error)) throw error
      this.#silentUntilMs = this.#clock.now() + this.#backoff.nextMs()
      return UNAVAILABLE
    }
  }

  #remember(name: string, entry: Entry | undefined): void {
    this.#known.delete(name)
    this.#known.set(name, entry)
    if (this.#known.size <= REMEMBERED_MAX) return
    const [oldest] = this.#known.keys()
    this.#known.delete(oldest as string)
    this.#watch.remove(oldest as string)
  }
}

function describe(entry: Entry | undefined, stale: boolean): Lookup {
  return entry === undefined ? { status: 'absent', stale } : { status: 'found', entry, stale }
}
