/**
 * Delivers data and ends to the programs of a channel's sockets: at the end of a turn of the event loop, outside the
 * ring. Whatever a listener does or throws, no message is lost.
 *
 * Bytes of sockets that read are copied out of the ring into pieces, in the order of arrival. As with libuv, each piece
 * has memory of its own: the program may read all of it, and may transfer it. Small messages of one stream that arrive
 * together become one piece.
 */
import { copyBytes } from '../../nic/index.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import type { ChannelHost } from './channel-host.ts'
import { allocateForNative, LENT_MAX, LENT_MIN, lend } from './lent-memory.ts'
import type { Stream } from './stream.ts'
import { StreamQueue } from './stream-queue.ts'

/** Time after which the rest is left to the next turn: a program may have resumed any number of sockets at once. */
const DELIVER_MS = 2
/** Small messages of one turn are gathered up to this length, and become one 'data'. */
const GATHERED_MAX = 64 * 1024
/** A message of at least this size is not gathered. */
const GATHERED_MESSAGE_MAX = 8 * 1024

const EMPTY = Buffer.alloc(0)

/** The channel, as deliveries use it. */
export interface DeliveringChannel {
  readonly isOpen: boolean
  readonly host: ChannelHost
  /** Schedules a turn, which delivers. */
  scheduleTurn(): void
}

/** Queued pieces, in columns. After a listener has thrown, delivery continues with the next piece. */
class Pieces {
  count = 0
  /** The first piece that is not delivered. */
  next = 0
  readonly streams: (Stream | undefined)[] = []
  readonly bytes: Buffer[] = []
  /** Small messages of this stream join the last piece. */
  run: Stream | undefined
  /** Where small messages are gathered: lent memory, which native code gets as it is if there are many. */
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
    const isNative = stream?.sink?.isNative === true
    if (isNative && length >= LENT_MIN) {
      this.bytes[this.count - 1] = this.gathered.subarray(0, length)
      this.gathered = EMPTY
      return
    }
    const piece = isNative ? allocateForNative(length) : allocateFresh(length)
    copyBytes(this.gathered, 0, piece, 0, length)
    this.bytes[this.count - 1] = piece
  }

  /** False if the run would become too long. */
  private join(bytes: Uint8Array, offset: number, length: number): boolean {
    if (this.runLength === 0) {
      if (this.gathered === EMPTY) this.gathered = lend(LENT_MAX)
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
  /** Pieces for fresh streams, which the next turn delivers. */
  private laterPieces = new Pieces()
  /** Streams whose programs are notified of the connection in this turn. */
  private readonly fresh: Stream[] = []
  private isRestScheduled = false

  constructor(channel: DeliveringChannel) {
    this.channel = channel
  }

  /**
   * The program is notified of the connection in this turn. As libuv looks for data only afterwards, everything else is
   * delivered in the next turn, after the immediates.
   */
  addFresh(stream: Stream): void {
    stream.isFresh = true
    this.fresh.push(stream)
  }

  /** The next turn delivers the stream's receive buffer, or its end. */
  schedule(stream: Stream): void {
    this.waiting.add(stream)
    this.scheduleTurn()
  }

  /** Queues a copy of bytes for a stream that reads. */
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

  /** Delivers receive buffers and ends, then queued pieces. Continues where it was if a listener threw. */
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
      channel.host.drainTicks()
      // Pieces that a program has polled itself meanwhile.
      if (pieces.run !== undefined) pieces.endRun()
    }
    pieces.next = 0
    pieces.count = 0
    if (waiting.size > 0) this.scheduleTurn()
  }

  /** Moves the pieces of fresh streams to the next turn. No user code runs here. */
  endTurn(): void {
    if (this.laterPieces.count > 0) {
      this.scheduleTurn()
      // A listener threw: the streams stay fresh until earlier pieces are delivered.
      if (this.pieces.count > 0) return
      const { pieces } = this
      this.pieces = this.laterPieces
      this.laterPieces = pieces
    }
    const { fresh } = this
    if (fresh.length === 0) return
    // In the order of their connections.
    for (const stream of fresh) {
      stream.isFresh = false
      stream.startReading()
    }
    fresh.length = 0
  }

  /** A closed channel has no turns: the event loop delivers, not the user code that closed the channel. */
  scheduleRest(): void {
    if (this.isRestScheduled) return
    this.isRestScheduled = true
    this.channel.host.departures.goOnLater(this.deliverRest)
  }

  /** Called by the event loop only. */
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
    const { host } = channel
    const endMs = host.clock.now() + DELIVER_MS
    // Only streams that wait now: one that is scheduled meanwhile is delivered in the next turn.
    for (const stream of waiting.snapshot()) {
      // Queued pieces come first, and the rest a turn later. The same holds for fresh streams.
      if (!waiting.has(stream) || stream.queuedCount > 0 || stream.isFresh) continue
      waiting.delete(stream)
      let isDone = false
      try {
        stream.deliver()
        isDone = true
      } finally {
        // A listener threw: the rest, or the end, is still due.
        if (!isDone) this.schedule(stream)
      }
      host.drainTicks()
      if (channel.isOpen ? host.clock.now() >= endMs : !host.departures.hasTime()) return
    }
  }
}
