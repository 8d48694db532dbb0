/**
 * One background stream for all single names that a client watches: those that it looked up, and its own. When the set
 * grows the stream is reopened, from before what is known of any of its names.
 */
import { type Clock, startInBackground, type Timer } from '../../nic/clock.ts'
import type { Change, Entry } from '../record.ts'
import type { Cursor } from '../store/change-log.ts'
import type { NameError } from './errors.ts'
import { EventStream, type StreamListener } from './event-stream.ts'
import type { Target } from './target.ts'

/** Names in one stream; the daemon's limit. */
export const WATCHED_MAX = 256
/** Pause in which names are collected for one new stream. */
const GATHER_MS = 20
/** Shortest time between two new streams, for a program that keeps asking for new names. */
const OPEN_PAUSE_MS = 1000

/** How long a daemon that refused the stream is not asked again. */
const REFUSED_MS = 30_000

/** No point of any history. */
const UNKNOWN: Cursor = { epoch: '', revision: 0, part: 0 }

export interface NameListener {
  isInterestedIn(name: string): boolean
  handleChange(change: Change): void
  handleUp(epoch: string): void
  /** Changes were missed or undone: the state of every registration is unknown. */
  handleLost(): void
  /** There is no stream for a while. */
  handleRefused(): void
}

export class NameWatch implements StreamListener {
  readonly #target: Target
  readonly #clock: Clock
  readonly #listeners: NameListener[] = []
  /** Each name with the cursor as of which it is known. */
  readonly #names = new Map<string, Cursor>()
  #stream: EventStream | undefined
  #streamed = new Set<string>()
  /** The stream has delivered every change after this cursor. */
  #start: Cursor | undefined
  #gathering: Timer | undefined
  #openedMs = Number.NEGATIVE_INFINITY
  #refusedUntilMs = 0
  #isClosed = false

  constructor(target: Target) {
    this.#target = target
    this.#clock = target.time.clock
  }

  listen(listener: NameListener): void {
    this.#listeners.push(listener)
  }

  /** True if a change of `name` would have been delivered. */
  isCurrent(name: string): boolean {
    const known = this.#names.get(name)
    const start = this.#start
    if (known === undefined || start === undefined || this.#stream?.isUp !== true) return false
    return this.#streamed.has(name) && start.epoch === known.epoch && start.revision <= known.revision
  }

  /**
   * Watches `name`, which stood for `entry` as of `cursor`. Other users of the name are notified, because the stream
   * will not repeat it. False if a later change was already delivered: then the caller is behind.
   */
  add(name: string, cursor: Cursor, entry: Entry | undefined): boolean {
    const known = this.#names.get(name)
    if (known?.epoch === cursor.epoch && cursor.revision < known.revision) return false
    this.#names.set(name, cursor)
    if (known !== undefined) this.#notifyListeners(changeTo(name, cursor, entry))
    if (this.#isClosed || this.#streamed.has(name) || this.#clock.now() < this.#refusedUntilMs) return true
    const delayMs = Math.max(GATHER_MS, this.#openedMs + OPEN_PAUSE_MS - this.#clock.now())
    this.#gathering ??= startInBackground(this.#clock, () => this.#open(), delayMs)
    return true
  }

  /** Forgets the name, unless another user watches it. */
  remove(name: string): void {
    if (this.#listeners.some(listener => listener.isInterestedIn(name))) return
    this.#names.delete(name)
    // Later changes of it are not recorded: if it is watched again, the stream is reopened.
    this.#streamed.delete(name)
    if (this.#names.size > 0) return
    this.#stream?.close()
    this.#stream = undefined
    this.#streamed = new Set()
  }

  close(): void {
    this.#isClosed = true
    this.#clock.clearTimeout(this.#gathering)
    this.#stream?.close()
  }

  handleUp(from: Cursor): void {
    this.#start ??= from
    for (const listener of this.#listeners) listener.handleUp(from.epoch)
  }

  handleChange(change: Change): void {
    const { name, revision } = change
    const known = this.#names.get(name)
    const epoch = this.#stream?.cursor?.epoch
    if (known === undefined || epoch === undefined) return
    // A stream that began earlier repeats changes that are already known.
    if (known.epoch === epoch && revision <= known.revision) return
    this.#names.set(name, { epoch, revision, part: 0 })
    this.#notifyListeners(change)
  }

  handleDown(): void {}

  /** The history may have gone back: cached entries may be newer than the present state. */
  handleLost(): void {
    this.#start = undefined
    for (const name of this.#names.keys()) this.#names.set(name, UNKNOWN)
    for (const listener of this.#listeners) listener.handleLost()
  }

  /** Without a stream every look-up asks the daemon. */
  handleRefused(_error: NameError): void {
    this.#stream = undefined
    this.#streamed = new Set()
    this.#refusedUntilMs = this.#clock.now() + REFUSED_MS
    for (const listener of this.#listeners) listener.handleRefused()
  }

  #notifyListeners(change: Change): void {
    for (const listener of this.#listeners) listener.handleChange(change)
  }

  #open(): void {
    this.#gathering = undefined
    if (this.#names.size === 0) return
    this.#openedMs = this.#clock.now()
    const after = this.#beginning()
    this.#stream?.close()
    this.#start = after
    this.#streamed = new Set([...this.#names.keys()].slice(-WATCHED_MAX))
    this.#stream = new EventStream({
      target: this.#target,
      filter: { names: [...this.#streamed] },
      after,
      listener: this,
      isBackground: true,
    })
  }

  /** The oldest cursor of all names; undefined if they are of different histories. */
  #beginning(): Cursor | undefined {
    const received = wholeRevision(this.#stream?.cursor)
    let first = received
    for (const [name, known] of this.#names) {
      if (known === UNKNOWN) continue
      // Names of the old stream are known as of its last event, or of a later answer.
      if (received !== undefined && this.isCurrent(name)) {
        if (known.revision < received.revision) this.#names.set(name, received)
      } else if (first === undefined || (first.epoch === known.epoch && known.revision < first.revision))
        first = known
      else if (first.epoch !== known.epoch) return undefined
    }
    return first
  }
}

function changeTo(name: string, { revision }: Cursor, entry: Entry | undefined): Change {
  return entry === undefined ? { type: 'delete', name, revision } : { type: 'put', ...entry }
}

/** Within a revision, the revision before is complete. */
function wholeRevision(cursor: Cursor | undefined): Cursor | undefined {
  return cursor === undefined || cursor.part === 0
    ? cursor
    : { ...cursor, revision: cursor.revision - 1, part: 0 }
}
