import type { Stream } from './stream.ts'

const NOBODY: readonly Stream[] = []

/**
 * Streams that wait for their turn, each once. An array, with a mark in the stream, and not a Set: V8 links the tables of a
 * Set that comes and goes, as it does those of a Map (stream-table.ts).
 */
export class StreamQueue {
  readonly #streams: Stream[] = []
  readonly #mark: number

  /** `mark`: a bit of `Stream.queues` that no other queue has. */
  constructor(mark: number) {
    this.#mark = mark
  }

  get size(): number {
    return this.#streams.length
  }

  get first(): Stream | undefined {
    return this.#streams[0]
  }

  add(stream: Stream): void {
    if (this.has(stream)) return
    stream.queues |= this.#mark
    this.#streams.push(stream)
  }

  delete(stream: Stream): void {
    if (!this.has(stream)) return
    stream.queues &= ~this.#mark
    if (stream === this.#streams[0]) this.#streams.shift()
    else this.#streams.splice(this.#streams.indexOf(stream), 1)
  }

  clear(): void {
    for (const stream of this.#streams) stream.queues &= ~this.#mark
    this.#streams.length = 0
  }

  has(stream: Stream): boolean {
    return (stream.queues & this.#mark) !== 0
  }

  /** Those who wait now. */
  snapshot(): readonly Stream[] {
    return this.#streams.length === 0 ? NOBODY : this.#streams.slice()
  }
}
