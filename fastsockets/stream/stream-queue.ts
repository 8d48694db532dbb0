import type { Stream } from './stream.ts'

const NOBODY: readonly Stream[] = []
/** To take them out at the front one by one would move all that are behind, each time. */
const CUT_OFF_MIN = 64

/**
 * Streams that wait for their turn, each once. An array, with a mark in the stream, and not a Set: V8 links the tables of a
 * Set that comes and goes, as it does those of a Map (stream-table.ts).
 */
export class StreamQueue {
  /** From `firstAt` on; what lies before is `undefined`, and is cut off when it is much. */
  private readonly streams: (Stream | undefined)[] = []
  private firstAt = 0
  /** How many wait. */
  size = 0
  private readonly mark: number

  /** `mark`: a bit of `Stream.queues` that no other queue has. */
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

  /** Those who wait now. */
  snapshot(): readonly Stream[] {
    return this.size === 0 ? NOBODY : (this.streams.slice(this.firstAt) as Stream[])
  }
}
