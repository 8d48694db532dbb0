import type { Stream } from './stream.ts'

const NOBODY: readonly Stream[] = []
/** Removed entries stay at the front of the array until there are so many: each cut moves all others. */
const CUT_OFF_MIN = 64

/**
 * Streams that wait, each once. An array with a mark in the stream, and not a Set: V8 chains the tables of a Set whose
 * entries change, as of a Map (stream-table.ts).
 */
export class StreamQueue {
  /** From `firstAt` on; earlier entries are `undefined`. */
  private readonly streams: (Stream | undefined)[] = []
  private firstAt = 0
  /** The number of waiting streams. */
  size = 0
  private readonly mark: number

  /** `mark`: a bit of `Stream.queues` that no other queue uses. */
  constructor(mark: number) {
    this.mark = mark
  }

  get first(): Stream | undefined {
    return this.streams[this.firstAt]
  }

  add(stream: Stream): void {
    if (this.has(stream)) return
    stream.queues |= this.mark
    this.streams.push(stream)
    this.size++
  }

  delete(stream: Stream): void {
    if (!this.has(stream)) return
    stream.queues &= ~this.mark
    this.size--
    if (stream !== this.first) {
      this.streams.splice(this.streams.indexOf(stream, this.firstAt), 1)
      return
    }
    this.streams[this.firstAt++] = undefined
    if (this.size > 0 && this.firstAt < CUT_OFF_MIN + this.size) return
    this.streams.splice(0, this.firstAt)
    this.firstAt = 0
  }

  clear(): void {
    for (const stream of this.snapshot()) stream.queues &= ~this.mark
    this.streams.length = 0
    this.firstAt = 0
    this.size = 0
  }

  has(stream: Stream): boolean {
    return (stream.queues & this.mark) !== 0
  }

  /** The streams that wait now. */
  snapshot(): readonly Stream[] {
    return this.size === 0 ? NOBODY : (this.streams.slice(this.firstAt) as Stream[])
  }
}
