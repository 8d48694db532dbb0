/**
 * What has come for the sockets of a channel, and when their programs get it: at the end of a turn of the event loop, outside
 * the ring. Whatever a program does or throws then, no message is lost.
 *
 * Bytes of sockets that read are copied out of the ring into pieces, in the order of arrival. Each piece that a program gets
 * has memory of its own, as from libuv: the program may look at all of it, and may transfer it. Small messages of one stream
 * that arrive together become one piece.
 */
import { copyBytes } from '../../nic/index.ts'
import { performance, setImmediate } from '../../nic/real-time.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import { drainTicks } from '../host/node-internals.ts'
import { allocateForNative } from './lent-memory.ts'
import type { Stream } from './stream.ts'
import { StreamQueue } from './stream-queue.ts'

/** After so long the rest of what waits is left to the next turn: a program may have resumed any number of sockets at once. */
const DELIVER_MS = 2
/** Small messages of one turn are gathered up to this length, and become one 'data'. */
const GATHERED_MAX = 64 * 1024
/** A message of at least this size is not gathered. */
const GATHERED_MESSAGE_MAX = 8 * 1024

const EMPTY = Buffer.alloc(0)

/** The channel, as far as deliveries use it. */
export interface DeliveringChannel {
  readonly isOpen: boolean
  readonly isRaw: boolean
  /** The next turn delivers. */
  scheduleTurn(): void
}

/** Pieces on their way to programs, in columns: hand-over goes on where it was if a listener throws. */
class Pieces {
  count = 0
  /** The first that was not handed over. */
  next = 0
  readonly streams: (Stream | undefined)[] = []
  readonly bytes: Buffer[] = []
  /** Small messages of this stream still join the last piece. */
  run: Stream | undefined
  /** Where small messages are gathered. */
  private gathered = EMPTY
  /** Bytes of the run that are gathered; 0 while it is one message. */
  private runLength = 0

  add(stream: Stream, bytes: Uint8Array, offset: number, length: number): void {
    if (this.run !== undefined) {
      if (this.run === stream && length < GATHERED_MESSAGE_MAX && this.join(bytes, offset, length)) return
      this.endRun()
    }
    const piece = stream.sink?.isNative === true ? allocateForNative(length) : allocateFresh(length)
    copyBytes(bytes, offset, piece, 0, length)
    stream.queuedCount++
    this.streams[this.count] = stream
    this.bytes[this.count++] = piece
    if (length < GATHERED_MESSAGE_MAX) this.run = stream
  }

  /** The last piece is complete: the next bytes are another stream's, or there are none. */
  endRun(): void {
    const stream = this.run
    this.run = undefined
    if (this.runLength === 0) return
    const length = this.runLength
    this.runLength = 0
    const piece = stream?.sink?.isNative === true ? allocateForNative(length) : allocateFresh(length)
    copyBytes(this.gathered, 0, piece, 0, length)
    this.bytes[this.count - 1] = piece
  }

  /** False if the run would become too long. */
  private join(bytes: Uint8Array, offset: number, length: number): boolean {
    if (this.runLength === 0) {
      if (this.gathered === EMPTY) this.gathered = allocateFresh(GATHERED_MAX)
      const first = this.bytes[this.count - 1] as Buffer
      if (first.length + length > GATHERED_MAX) return false
      copyBytes(first, 0, this.gathered, 0, first.length)
      this.runLength = first.length
    } else if (this.runLength + length > GATHERED_MAX) return false
    copyBytes(bytes, offset, this.gathered, this.runLength, length)
    this.runLength += length
    return true
  }
}

export class Deliveries {
  /** Counts the turns in which received data was handed over. */
  turn = 0
  private readonly channel: DeliveringChannel
  private readonly waiting = new StreamQueue(2)
  private pieces = new Pieces()
  /** Those for fresh streams, which are delivered in the next turn. */
  private laterPieces = new Pieces()
  /** Streams whose programs are notified of the connection in this turn. */
  private readonly fresh: Stream[] = []
  private isRestScheduled = false

  constructor(channel: DeliveringChannel) {
    this.channel = channel
  }

  /**
   * Its program is notified in this turn that it is connected. As with libuv, which looks for data only afterwards, everything
   * else is delivered in the next turn, after the immediates.
   */
  addFresh(stream: Stream): void {
    stream.isFresh = true
    this.fresh.push(stream)
  }

  /** What waits in its receive buffer, or its end. */
  schedule(stream: Stream): void {
    this.waiting.add(stream)
    this.scheduleTurn()
  }

  /** Bytes for a stream that reads. They are copied here. */
  queue(stream: Stream, bytes: Uint8Array, offset: number, length: number): void {
    const pieces = stream.isFresh ? this.laterPieces : this.pieces
    pieces.add(stream, bytes, offset, length)
  }

  endRun(stream: Stream): void {
    const pieces = stream.isFresh ? this.laterPieces : this.pieces
    if (pieces.run === stream) pieces.endRun()
  }

  forget(stream: Stream): void {
    this.waiting.delete(stream)
  }

  /** What waits in receive buffers, and ends, then what has just come. Goes on where it was if a listener threw. */
  deliver(): void {
    const { pieces, waiting, channel } = this
    if (pieces.count === 0 && waiting.size === 0) return
    this.turn++
    if (pieces.run !== undefined) pieces.endRun()
    if (waiting.size > 0) this.deliverWaiting()
    while (pieces.next < pieces.count) {
      const at = pieces.next++
      const stream = pieces.streams[at] as Stream
      const bytes = pieces.bytes[at] as Buffer
      pieces.streams[at] = undefined
      pieces.bytes[at] = EMPTY
      stream.queuedCount--
      stream.deliverQueued(bytes)
      if (!channel.isRaw) drainTicks()
      // What came meanwhile, to a program that polls by itself.
      if (pieces.run !== undefined) pieces.endRun()
    }
    pieces.next = 0
    pieces.count = 0
    if (waiting.size > 0) this.scheduleTurn()
  }

  /** What has come for fresh streams is delivered in the next turn. No program's code runs here. */
  endTurn(): void {
    if (this.laterPieces.count > 0) {
      this.scheduleTurn()
      // A listener threw: the streams stay fresh until what was before them is delivered.
      if (this.pieces.count > 0) return
      const { pieces } = this
      this.pieces = this.laterPieces
      this.laterPieces = pieces
    }
    const { fresh } = this
    if (fresh.length === 0) return
    // In the order in which they were connected.
    for (const stream of fresh) {
      stream.isFresh = false
      stream.startReading()
    }
    fresh.length = 0
  }

  /** A closed channel has no turns: the event loop delivers, not the program's code that closed it. */
  scheduleRest(): void {
    if (this.isRestScheduled) return
    this.isRestScheduled = true
    setImmediate(this.deliverRest)
  }

  /** To be called by the event loop only. */
  readonly deliverRest = (): void => {
    this.isRestScheduled = false
    try {
      this.deliver()
    } finally {
      this.endTurn()
      if (this.waiting.size > 0 || this.pieces.count > 0) this.scheduleRest()
    }
  }

  private scheduleTurn(): void {
    if (this.channel.isOpen) this.channel.scheduleTurn()
    else this.scheduleRest()
  }

  private deliverWaiting(): void {
    const { channel, waiting } = this
    const endMs = channel.isOpen ? performance.now() + DELIVER_MS : Number.POSITIVE_INFINITY
    // Those that wait now: a stream that is scheduled meanwhile is delivered in the next turn.
    for (const stream of waiting.snapshot()) {
      // Posted bytes come first, and the rest a turn later. The same if it is just connected.
      if (!waiting.has(stream) || stream.queuedCount > 0 || stream.isFresh) continue
      waiting.delete(stream)
      let isDone = false
      try {
        stream.deliver()
        isDone = true
      } finally {
        // A listener threw: the rest, or the end, still has to come.
        if (!isDone) this.schedule(stream)
      }
      if (!channel.isRaw) drainTicks()
      if (performance.now() >= endMs) return
    }
  }
}
