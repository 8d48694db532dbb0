/** The client of the name service. */
import { createRequire } from 'node:module'
import type { Observable, Subscriber } from 'rxjs'
import { kindOf } from '../name.ts'
import type { Change, Entry } from '../record.ts'
import { type Cursor, parseCursor } from '../store/change-log.ts'
import { Caller, TIMEOUT_MS_DEFAULT } from './caller.ts'
import { NameError } from './errors.ts'
import { EventStream } from './event-stream.ts'
import { type Lookup, Lookups } from './lookups.ts'
import { NameApi } from './name-api.ts'
import { NameWatch } from './name-watch.ts'
import { ownTime } from './own-time.ts'
import type { NewRegistration, Registration, RegistrationOptions } from './registration.ts'
import { Session } from './session.ts'
import { Target, type TargetOptions } from './target.ts'

const TTL_MS_DEFAULT = 10_000

export interface NameClientOptions extends TargetOptions {
  /** How long names outlive this program if it dies. Default 10 s. */
  readonly ttlMs?: number
}

export interface LookupOptions {
  /** After this time the cached answer is returned, if there is one. Default 2 s. */
  readonly timeoutMs?: number
}

export interface WatchOptions {
  /** A cursor from `list`: later changes come first. Default: from now on. */
  readonly after?: string
}

/**
 * `up`: the watch has begun, or goes on. `reset`: missed changes are no longer available; list again. It comes just before
 * `up`, so that no change after that listing is missed.
 */
export type NameEvent = Change | { readonly type: 'up' } | { readonly type: 'reset' }

export class NameClient {
  /** The plain operations of the daemon. */
  readonly api: NameApi
  readonly #target: Target
  readonly #caller: Caller
  readonly #watch: NameWatch
  readonly #lookups: Lookups
  readonly #session: Session
  readonly #streams = new Map<EventStream, Subscriber<NameEvent>>()
  #isClosed = false

  /** Does not connect. Throws `ERR_NAMES_ARGUMENT` for invalid options. `time`: of the simulator. */
  constructor(options: NameClientOptions = {}, time = ownTime) {
    this.#target = new Target(options, process.env, time)
    this.#caller = new Caller(this.#target)
    this.api = new NameApi(this.#caller)
    this.#watch = new NameWatch(this.#target)
    this.#lookups = new Lookups(this.api, this.#watch, time)
    this.#session = new Session(this.api, this.#watch, options.ttlMs ?? TTL_MS_DEFAULT, time)
  }

  /**
   * The entry of `name`. Never waits longer than `timeoutMs`, and does not reject because the daemon is unreachable.
   * Rejects with `ERR_NAMES_REFUSED` if the daemon refuses, and with `ERR_NAMES_ARGUMENT` for an invalid name.
   */
  async lookup(name: string, { timeoutMs = TIMEOUT_MS_DEFAULT }: LookupOptions = {}): Promise<Lookup> {
    checkName(name)
    return await this.#lookups.lookUp(name, timeoutMs)
  }

  /** The same from the cache alone; undefined if it has no answer. Sends nothing. */
  peek(name: string): Lookup | undefined {
    return this.#lookups.peek(name)
  }

  /** All names that begin with `prefix`, from the daemon, and the cursor from which to watch them. */
  list(prefix = ''): Promise<{ entries: Entry[]; cursor: string }> {
    return this.api.list(prefix)
  }

  /**
   * Registers a name, now or as soon as a daemon is reachable, and keeps it registered until it is closed. Returns at
   * once. Throws `ERR_NAMES_ARGUMENT` for an invalid name, or one that this client has already.
   */
  register(wanted: NewRegistration, options: RegistrationOptions = {}): Registration {
    checkName(wanted.name)
    return this.#session.register(wanted, options)
  }

  /**
   * Every change of names that begin with `prefix`, each once, in order, also over restarts of the daemon. Cold: each
   * subscription is a stream of its own, which keeps the program alive. There is no back-pressure: what a subscriber
   * does not take at once, it must hold itself. Errs with `ERR_NAMES_REFUSED`, or `ERR_NAMES_CLOSED` if the client is closed
   * already; completes when it is closed later.
   */
  watch$(prefix = '', { after }: WatchOptions = {}): Observable<NameEvent> {
    const cursor = after === undefined ? undefined : checkedCursor(after)
    // Loaded on first use: rxjs takes longer to load than all the rest.
    const rxjs = createRequire(import.meta.url)('rxjs') as typeof import('rxjs')
    return new rxjs.Observable(subscriber => {
      if (this.#isClosed) return subscriber.error(new NameError('ERR_NAMES_CLOSED', 'the client is closed'))
      let isLost = false
      const stream = new EventStream({
        target: this.#target,
        filter: { prefixes: [prefix] },
        after: cursor,
        isBackground: false,
        listener: {
          handleUp: () => {
            if (isLost) subscriber.next({ type: 'reset' })
            isLost = false
            subscriber.next({ type: 'up' })
          },
          handleChange: change => subscriber.next(change),
          handleDown: () => {},
          handleLost: () => {
            isLost = true
          },
          handleRefused: error => subscriber.error(error),
        },
      })
      this.#streams.set(stream, subscriber)
      return () => {
        this.#streams.delete(stream)
        stream.close()
      }
    })
  }

  /** Releases all names and ends everything. Does not wait long for an unreachable daemon. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#watch.close()
    for (const subscriber of [...this.#streams.values()]) subscriber.complete()
    await this.#session.close()
    this.#caller.close()
    this.#target.close()
  }
}

function checkName(name: string): void {
  if (kindOf(name) === undefined)
    throw new NameError('ERR_NAMES_ARGUMENT', `nothing can be called ${JSON.stringify(name)}`)
}

function checkedCursor(after: string): Cursor {
  const cursor = parseCursor(after)
  if (cursor === undefined) throw new NameError('ERR_NAMES_ARGUMENT', 'this is no cursor')
  return cursor
}
