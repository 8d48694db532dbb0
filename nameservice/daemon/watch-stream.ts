/** One watcher: a stream of Server-Sent Events, and its position in the log. */
import type { ServerResponse } from 'node:http'
import type { Clock } from '../../nic/clock.ts'
import type { WatchFilter } from './watch-filter.ts'

/** Time after which the connection of a watcher that does not read is destroyed. */
const BLOCKED_MS_MAX = 60_000
const LAST_EVENT_MS = 5000

export class WatchStream {
  readonly owner: string
  readonly filter: WatchFilter
  readonly #response: ServerResponse
  readonly #clock: Clock
  /** Number of the next change to look at, if `isCurrent` is false. */
  position: number
  /** The watcher has been sent every change that it wants. */
  isCurrent = false
  #blockedSinceMs: number | undefined

  constructor(owner: string, filter: WatchFilter, position: number, response: ServerResponse, clock: Clock) {
    this.#clock = clock
    this.owner = owner
    this.filter = filter
    this.position = position
    this.#response = response
  }

  get isBlocked(): boolean {
    return this.#blockedSinceMs !== undefined
  }

  /** Writes events. If they fill the stream's buffer, the hub writes no more until the watcher has read. */
  write(events: string | Buffer, handleDrain: () => void): void {
    if (this.#response.write(events) || this.isBlocked) return
    this.#blockedSinceMs = this.#clock.now()
    this.#response.once('drain', () => {
      this.#blockedSinceMs = undefined
      handleDrain()
    })
  }

  /** Sends the last event. The connection is destroyed if the watcher does not read it in time. */
  end(event: string): void {
    this.#response.end(event)
    this.#response.setTimeout(LAST_EVENT_MS, () => this.#response.destroy())
  }

  /** Destroys the stream if it was blocked for too long; returns whether it did. */
  giveUpIfStuck(): boolean {
    const isStuck =
      this.#blockedSinceMs !== undefined && this.#clock.now() - this.#blockedSinceMs > BLOCKED_MS_MAX
    if (isStuck) this.#response.destroy()
    return isStuck
  }
}

/** Encodes one event. `id` is the cursor from which its receiver continues. `data` must be one line. */
export function formatEvent(event: string, id: string | undefined, data: string): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`
}
