/**
 * Sends every watcher the changes of its names. Watchers pull: a watcher that is behind has a position in the log,
 * and gets the changes from there to the end when its connection can take more. There is no queue for a slow
 * watcher. If the log no longer has the changes that a watcher needs, its stream ends with a `behind` event. Work
 * comes in slices, so that a thousand watchers do not delay one look-up; a change costs work only for the watchers
 * of its name.
 */
import type { ServerResponse } from 'node:http'
import { type Clock, realClock, startInBackground, type Timer } from '../../nic/clock.ts'
import { Refusal } from '../problem.ts'
import { type ChangeLog, type Cursor, formatCursor, type LogListener } from '../store/change-log.ts'
import type { StoredChange } from '../store/stored.ts'
import { EVENT_STREAM_TYPE } from './operation.ts'
import { entryJson } from './registrar.ts'
import type { Limits } from './settings-schema.ts'
import { limitFor, tooManyInAll } from './shares.ts'
import type { WatchFilter } from './watch-filter.ts'
import { WatchIndex } from './watch-index.ts'
import { formatEvent, WatchStream } from './watch-stream.ts'

/** Time after which a slice ends, so that other work of the event loop runs. */
const SLICE_MS = 2
/** Most changes that one watcher gets in a slice. */
const CHANGES_MAX = 256
/** Bytes after which a watcher gets no further change before it has read. */
const GIVEN_SIZE_MAX = 16 * 1024
/** Interval of bookmarks, which give the current cursor to watchers without changes. */
const BOOKMARK_MS = 15_000
/** Time that a watcher waits before it reconnects after the connection has ended. */
const RETRY_MS = 200

export interface WatchObserver {
  handleEvents(count: number): void
  handleBehind(): void
}

export class WatchHub implements LogListener {
  readonly #log: ChangeLog
  readonly #limits: Limits
  readonly #observer: WatchObserver
  readonly #clock: Clock
  readonly #bookmarkMs: number
  readonly #streams = new Set<WatchStream>()
  readonly #index = new WatchIndex()
  /** Number of the next change that has not been passed to any watcher. */
  #next: number
  readonly #countByOwner = new Map<string, number>()
  /** Streams that may have changes to send, in the order of their service. */
  readonly #behind = new Set<WatchStream>()
  /** Encoded events, for as long as the log has their changes. */
  readonly #encoded = new WeakMap<StoredChange, Buffer>()
  #bookmarks: Timer | undefined
  #isScheduled = false

  constructor(
    log: ChangeLog,
    limits: Limits,
    observer: WatchObserver,
    bookmarkMs = BOOKMARK_MS,
    clock = realClock,
  ) {
    this.#log = log
    this.#limits = limits
    this.#observer = observer
    this.#next = log.end
    this.#clock = clock
    this.#bookmarkMs = bookmarkMs
    this.#sendBookmarksLater()
    log.setListener(this)
  }

  get count(): number {
    return this.#streams.size
  }

  watchers(): Iterable<Pick<WatchStream, 'owner' | 'filter' | 'isCurrent'>> {
    return this.#streams
  }

  /** Begins a stream on `response`, whose head must not have been written. Throws a refusal. */
  open(
    owner: string,
    filter: WatchFilter,
    after: Cursor | undefined,
    response: ServerResponse,
    isAdmin = false,
  ): void {
    const { watchers, watchersPerOwner } = this.#limits
    // Queued behind another answer, the response would have no connection, and would get no 'close'.
    if (response.socket === null)
      throw new Refusal('malformed', 'A watch must not wait for another answer on its connection.')
    const owned = this.#countByOwner.get(owner) ?? 0
    if (owned >= watchersPerOwner) {
      throw new Refusal('limit-watchers', `An owner may have ${watchersPerOwner} watchers.`)
    }
    if (this.#streams.size >= limitFor({ isAdmin }, watchers))
      throw tooManyInAll('watchers', { isAdmin }, watchers)
    const position = after === undefined ? this.#log.end : this.#log.indexAfter(after)
    if (position === undefined) throw behind(this.#log)
    const start = after === undefined ? this.#log.head : formatCursor(after)

    const stream = new WatchStream(owner, filter, position, response, this.#clock)
    response.writeHead(200, { 'content-type': EVENT_STREAM_TYPE, 'cache-control': 'no-store' })
    stream.write(`retry: ${RETRY_MS}\n${formatEvent('hello', start, this.#progress())}`, () =>
      this.#handleDrain(stream),
    )
    this.#streams.add(stream)
    this.#index.add(stream)
    this.#countByOwner.set(owner, owned + 1)
    response.once('close', () => this.#forget(stream))
    this.#wake(stream)
  }

  handleGrowth(): void {
    // More changes at once than the log holds: every current watcher is behind.
    if (this.#next < this.#log.first) for (const stream of this.#streams) this.#fallBehind(stream)
    for (this.#next = Math.max(this.#next, this.#log.first); this.#next < this.#log.end; this.#next++) {
      this.#index.forEach(this.#log.at(this.#next).name, this.#fallBehind)
    }
    this.#schedule()
  }

  handleReset(): void {
    this.#next = this.#log.end
    for (const stream of this.#streams) this.#endBehind(stream)
  }

  /** Ends the streams of these owners: they must reconnect and authenticate again. */
  endThoseOf(isConcerned: (owner: string) => boolean): void {
    const event = formatEvent(
      'goodbye',
      undefined,
      JSON.stringify(new Refusal('unauthenticated', 'The tokens have changed.').document),
    )
    for (const stream of [...this.#streams]) {
      if (!isConcerned(stream.owner)) continue
      this.#forget(stream)
      stream.end(event)
    }
  }

  /** The daemon stops: watchers get all changes that their connections can take, and a `goodbye`. */
  close(): void {
    this.#clock.clearTimeout(this.#bookmarks)
    this.#log.setListener(undefined)
    const stopping = new Refusal('stopping', 'The daemon is stopping; come back to the next one.')
    const event = formatEvent('goodbye', undefined, JSON.stringify(stopping.document))
    for (const stream of [...this.#streams]) {
      while (this.#hasMoreFor(stream)) this.#advance(stream)
      if (this.#streams.has(stream)) stream.end(event)
    }
  }

  /** Marks the watcher as behind: the change `#next` matches its filter. */
  readonly #fallBehind = (stream: WatchStream): void => {
    if (stream.isCurrent) {
      stream.isCurrent = false
      stream.position = this.#next
    }
    if (!stream.isBlocked) this.#behind.add(stream)
  }

  #forget(stream: WatchStream): void {
    if (!this.#streams.delete(stream)) return
    this.#index.remove(stream)
    this.#behind.delete(stream)
    const left = (this.#countByOwner.get(stream.owner) ?? 1) - 1
    if (left === 0) this.#countByOwner.delete(stream.owner)
    else this.#countByOwner.set(stream.owner, left)
  }

  #handleDrain(stream: WatchStream): void {
    if (this.#streams.has(stream)) this.#wake(stream)
  }

  #wake(stream: WatchStream): void {
    this.#behind.add(stream)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#behind.size === 0) return
    this.#isScheduled = true
    this.#clock.setImmediate(() => {
      this.#isScheduled = false
      this.#sendSome()
      this.#schedule()
    })
  }

  /** One slice: each stream in turn; a stream with more changes goes to the end of the queue. */
  #sendSome(): void {
    const endMs = this.#clock.now() + SLICE_MS
    for (const stream of this.#behind) {
      this.#behind.delete(stream)
      this.#advance(stream)
      if (this.#hasMoreFor(stream)) this.#behind.add(stream)
      if (this.#clock.now() > endMs) return
    }
  }

  #hasMoreFor(stream: WatchStream): boolean {
    return this.#streams.has(stream) && !stream.isBlocked && !stream.isCurrent
  }

  #advance(stream: WatchStream): void {
    if (stream.isCurrent) return
    if (stream.position < this.#log.first) return this.#endBehind(stream)
    const events: Buffer[] = []
    const end = Math.min(this.#log.end, stream.position + CHANGES_MAX)
    for (let size = 0; stream.position < end && size < GIVEN_SIZE_MAX; stream.position++) {
      const change = this.#log.at(stream.position)
      if (!stream.filter.matches(change.name)) continue
      const event = this.#encode(change)
      events.push(event)
      size += event.length
    }
    stream.isCurrent = stream.position === this.#log.end
    if (events.length === 0) return
    this.#observer.handleEvents(events.length)
    const bytes = events.length === 1 ? (events[0] as Buffer) : Buffer.concat(events)
    stream.write(bytes, () => this.#handleDrain(stream))
  }

  #encode(change: StoredChange): Buffer {
    const known = this.#encoded.get(change)
    if (known !== undefined) return known
    const { revision, part, name, entry } = change
    const data =
      entry === undefined
        ? JSON.stringify({ type: 'delete', name, revision })
        : `{"type":"put",${entryJson(entry).slice(1)}`
    const cursor = formatCursor({ epoch: this.#log.epoch, revision, part })
    const event = Buffer.from(formatEvent('change', cursor, data))
    this.#encoded.set(change, event)
    return event
  }

  #endBehind(stream: WatchStream): void {
    this.#observer.handleBehind()
    this.#forget(stream)
    stream.end(formatEvent('behind', undefined, JSON.stringify(behind(this.#log).document)))
  }

  #sendBookmarksLater(): void {
    const send = (): void => {
      this.#sendBookmarksLater()
      this.#sendBookmarks()
    }
    this.#bookmarks = startInBackground(this.#clock, send, this.#bookmarkMs)
  }

  #sendBookmarks(): void {
    const bookmark = formatEvent('bookmark', this.#log.head, this.#progress())
    for (const stream of this.#streams) {
      if (stream.giveUpIfStuck() || stream.isBlocked || !stream.isCurrent) continue
      stream.write(bookmark, () => this.#handleDrain(stream))
    }
  }

  #progress(): string {
    return JSON.stringify({ epoch: this.#log.epoch, revision: this.#log.revision })
  }
}

function behind(log: ChangeLog): Refusal {
  const detail = 'The changes since then are no longer known here: list the names anew, and watch from there.'
  return new Refusal('behind', detail, { oldest: log.oldest })
}
