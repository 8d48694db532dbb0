/**
 * What has come for the sockets of a channel, and when their programs hear of it: at the end of a turn of the event loop, outside
 * the ring. Whatever a program does or throws then, no message is lost.
 */
import { performance, setImmediate } from '../../nic/real-time.ts'
import { drainTicks } from '../host/node-internals.ts'
import { FreshStreams } from './fresh-streams.ts'
import { PostedBytes } from './posted-bytes.ts'
import type { SocketChannel } from './socket-channel.ts'
import type { Stream } from './stream.ts'
import { StreamQueue } from './stream-queue.ts'

/** After so long the rest of what waits has the next turn: a program may have resumed any number of sockets at once. */
const TELL_MS = 2

export class Deliveries {
  /** Counts the times that received data was handed over. */
  turn = 0
  readonly #channel: SocketChannel
  readonly #waiting = new StreamQueue(2)
  readonly #fresh = new FreshStreams()
  #posted = new PostedBytes()
  /** Those for fresh streams, whose turn is the next. */
  #postedLater = new PostedBytes()
  #restIsScheduled = false

  constructor(channel: SocketChannel) {
    this.#channel = channel
  }

  /** Its program hears in this turn that it is connected, and of anything else in the next. */
  addFresh(stream: Stream): void {
    this.#fresh.add(stream)
  }

  /** What waits in its receive buffer, or its end. */
  schedule(stream: Stream): void {
    this.#waiting.add(stream)
    this.#scheduleTurn()
  }

  /** Bytes for a stream that reads. They are copied out of the ring here, and gathered with their neighbours. */
  post(stream: Stream, bytes: Uint8Array, offset: number, length: number): void {
    this.#postedOf(stream).add(stream, bytes, offset, length)
  }

  /** What comes next is not to be gathered with what has come. */
  endRun(stream: Stream): void {
    this.#postedOf(stream).endRun()
  }

  forget(stream: Stream): void {
    this.#waiting.delete(stream)
  }

  /** What waits in receive buffers, and ends, then what has just come. Goes on where it was if a listener threw. */
  tell(): void {
    const posted = this.#posted
    if (posted.isIdle && this.#waiting.size === 0) return
    this.turn++
    posted.endRun()
    this.#tellWaiting()
    while (posted.takeNext()) {
      posted.stream?.deliverPosted(posted.bytes)
      this.#drainTicks()
    }
    if (this.#waiting.size > 0) this.#scheduleTurn()
  }

  /** What has come for those who were fresh in this turn is told in the next. No program's code runs here. */
  endTurn(): void {
    if (!this.#postedLater.isIdle) {
      this.#scheduleTurn()
      // A listener threw: they stay fresh until what was before them is told.
      if (!this.#posted.isIdle) return
      ;[this.#posted, this.#postedLater] = [this.#postedLater, this.#posted]
    }
    this.#fresh.endTurn()
  }

  /** A closed channel has no more turns of its own. To be called by the event loop only, not from the program's code. */
  readonly tellRest = (): void => {
    this.#restIsScheduled = false
    try {
      this.tell()
    } finally {
      this.endTurn()
      if (this.#waiting.size > 0 || !this.#posted.isEmpty) this.scheduleRest()
    }
  }

  scheduleRest(): void {
    if (this.#restIsScheduled) return
    this.#restIsScheduled = true
    setImmediate(this.tellRest)
  }

  #scheduleTurn(): void {
    if (this.#channel.isOpen) this.#channel.channel.touch()
    else this.scheduleRest()
  }

  #postedOf(stream: Stream): PostedBytes {
    return stream.isFresh ? this.#postedLater : this.#posted
  }

  #tellWaiting(): void {
    if (this.#waiting.size === 0) return
    const endMs = this.#channel.isOpen ? performance.now() + TELL_MS : Number.POSITIVE_INFINITY
    // Those who are there now: whoever asks again meanwhile has the next turn.
    for (const stream of this.#waiting.snapshot()) {
      // Behind its own bytes, and a turn later; and so if it has just been told that it is connected.
      if (!this.#waiting.has(stream) || stream.postedCount > 0 || stream.isFresh) continue
      this.#waiting.delete(stream)
      let isDone = false
      try {
        stream.deliver()
        isDone = true
      } finally {
        // A listener threw: the rest, or the end, still has to come.
        if (!isDone) this.schedule(stream)
      }
      this.#drainTicks()
      if (performance.now() >= endMs) return
    }
  }

  /** As Node does between two callbacks of libuv. */
  #drainTicks(): void {
    if (!this.#channel.isRaw) drainTicks()
  }
}
