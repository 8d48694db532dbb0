/** One watcher: a stream of Server-Sent Events, and how far in the log it has come. */
import type { ServerResponse } from 'node:http'
import type { WatchFilter } from './watch-filter.ts'

/** A watcher who has not read for so long is gone, or is not worth waiting for. */
const BLOCKED_MS_MAX = 60_000
const LAST_EVENT_MS = 5000

export class WatchStream {
  readonly owner: string
  readonly filter: WatchFilter
  readonly #response: ServerResponse
  /** Number of the next change to look at, if `isCurrent` is false. */
  position: number
  /** It has been told everything that it wants to hear. */
  isCurrent = false
  #blockedSinceMs: number | undefined

  constructor(owner: string, filter: WatchFilter, position: number, response: ServerResponse) {
    this.owner = owner
    this.filter = filter
    this.position = position
    this.#response = response
  }

  get isBlocked(): boolean {
    return this.#blockedSinceMs !== undefined
  }

  /** Writes events; what is written then is the stream's whole buffer, and there will be no more until it is read. */
  write(events: string | Buffer, handleDrain: () => void): void {
    if (this.#response.write(events) || this.isBlocked) return
    this.#blockedSinceMs = performance.now()
    this.#response.once('drain', () => {
      this.#blockedSinceMs = undefined
      handleDrain()
    })
  }

  /** The last event. Who does not take it in time is hung up on. */
  end(event: string): void {
    this.#response.end(event)
    this.#response.setTimeout(LAST_EVENT_MS, () => this.#response.destroy())
  }

  /** Whether it was blocked for so long that it was given up. */
  giveUpIfStuck(): boolean {
    const isStuck =
      this.#blockedSinceMs !== undefined && performance.now() - this.#blockedSinceMs > BLOCKED_MS_MAX
    if (isStuck) this.#response.destroy()
    return isStuck
  }
}

/** One event; `id` is where a watcher goes on who has heard it. `data` is one line. */
export function formatEvent(event: string, id: string | undefined, data: string): string {
  return `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${data}\n\n`
}
