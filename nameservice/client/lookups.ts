/**
 * Look-ups with a memory. What was looked up is watched, so it is known to be current without asking; when the daemon
 * cannot be reached, what was known last is answered and says that it may be out of date.
 */
import { clearTimeout, performance, setTimeout } from '../../nic/real-time.ts'
import type { Change, Entry } from '../record.ts'
import { Backoff } from './backoff.ts'
import { isPassing } from './errors.ts'
import type { NameApi } from './name-api.ts'
import type { NameListener, NameWatch } from './name-watch.ts'

/** Names that are remembered; the one not asked for the longest goes first. */
export const REMEMBERED_MAX = 192

/** `found` or `absent`: what the daemon says, or said when it was last heard (`stale`). */
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
  readonly #backoff = new Backoff()
  /** Until then the daemon is taken to be as unreachable as it was a moment ago. */
  #silentUntilMs = 0

  constructor(api: NameApi, watch: NameWatch) {
    this.#api = api
    this.#watch = watch
    watch.listen(this)
  }

  isInterestedIn(name: string): boolean {
    return this.#known.has(name)
  }

  /** What is known without asking; undefined if that is nothing. */
  peek(name: string): Lookup | undefined {
    if (!this.#known.has(name)) return undefined
    return describe(this.#known.get(name), !this.#watch.isCurrent(name))
  }

  /** Answers within `timeoutMs`; the question then goes on in the background, for the next time. */
  async lookUp(name: string, timeoutMs: number): Promise<Lookup> {
    const known = this.peek(name)
    if (known?.stale === false) {
      this.#remember(name, known.entry)
      return known
    }
    if (performance.now() < this.#silentUntilMs) return known ?? UNAVAILABLE
    const asked = this.#ask(name)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Lookup>(resolve => {
      timer = setTimeout(() => resolve(known ?? UNAVAILABLE), timeoutMs)
    })
    const answer = await Promise.race([asked, late]).finally(() => clearTimeout(timer))
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

  /** The daemon is there. */
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
    // Nobody may be waiting for it any more.
    asked.catch(() => {})
    this.#underway.set(name, asked)
    return asked
  }

  /** Rejects if the daemon refuses; not if it is not there. */
  async #askDaemon(name: string): Promise<Lookup> {
    try {
      const { entry, cursor, isStale } = await this.#api.lookUp(name, { isBackground: true })
      this.handleUp()
      if (isStale || this.#watch.add(name, cursor, entry)) this.#remember(name, entry)
      // If more has been heard meanwhile, that is what is remembered.
      return describe(this.#known.has(name) ? this.#known.get(name) : entry, isStale)
    } catch (error) {
      if (!isPassing(error)) throw error
      this.#silentUntilMs = performance.now() + this.#backoff.nextMs()
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
