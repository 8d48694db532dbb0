import type { Stream } from './stream.ts'

/**
 * Streams whose program hears in this turn that they are connected. As with libuv, which looks for what there is to read only
 * then, it hears of that in the next turn, after the immediates.
 */
export class FreshStreams {
  readonly #streams: Stream[] = []

  add(stream: Stream): void {
    stream.isFresh = true
    this.#streams.push(stream)
  }

  /** In the order in which they were connected. No program's code runs here. */
  endTurn(): void {
    if (this.#streams.length === 0) return
    for (const stream of this.#streams) {
      stream.isFresh = false
      stream.startReading()
    }
    this.#streams.length = 0
  }
}
