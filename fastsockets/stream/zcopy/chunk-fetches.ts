import type { RemoteMemory } from '../../../nic/index.ts'
import { allocateFresh } from '../../host/fresh-memory.ts'
import type { Stream } from '../stream.ts'
import { FETCH_MAX } from '../stream-layout.ts'
import { sendReadCompleted } from '../stream-messages.ts'
import type { StreamSink } from '../stream-sink.ts'
import { importMemory, readRemote } from './one-sided.ts'

/** A program that looks at each receive's bytes before it posts the next one has that many turns for it. */
const POST_TURNS = 3

/** The receiver's half of ZCopy for one stream: what the peer offers, and how it gets to the program. */
export class ChunkFetches {
  readonly #stream: Stream
  #source: RemoteMemory | undefined
  /** Bytes of it that nobody has fetched, and where they begin. */
  #left = 0
  #at = 0
  #turns = 0
  #isCompletionOwed = false

  constructor(stream: Stream) {
    this.#stream = stream
  }

  /** There are bytes that nobody has fetched. Nothing else of this stream can come meanwhile. */
  get isOpen(): boolean {
    return this.#source !== undefined
  }

  /** False if the key does not give `length` bytes. */
  open(key: Uint8Array, length: number): boolean {
    const { channel } = this.#stream
    this.#source = importMemory(channel.channel.end, key, length, 'remoteRead')
    this.#left = length
    this.#at = 0
    this.#turns = 0
    return this.#source !== undefined
  }

  drop(): void {
    this.#source = undefined
  }

  /**
   * One piece, straight to where the program wants it: a turn each, so that other sockets have theirs. If the program
   * does not read, or the memory cannot be read, the peer is told to send the rest.
   */
  fetch(sink: StreamSink): void {
    const source = this.#source as RemoteMemory
    const stream = this.#stream
    if (sink.isReading) {
      const lengthMax = Math.min(this.#left, FETCH_MAX)
      const posted = sink.posted?.(lengthMax)
      const bytes = posted ?? allocateFresh(lengthMax)
      const isOnce = posted === undefined
      if (!readRemote(stream.channel.channel.end, bytes, source, this.#at, isOnce)) return this.#end()
      this.#at += bytes.length
      this.#left -= bytes.length
      stream.receiving.advance(bytes.length)
      stream.counts.received(bytes.length)
      stream.counts.fetched(bytes.length)
      if (this.#left === 0) this.#end()
      else stream.channel.deliveries.schedule(stream)
      if (posted === undefined) return stream.handOver(bytes as Buffer)
      sink.handlePosted?.(bytes.length)
      stream.consume(bytes.length)
    } else if (sink.posted !== undefined && this.#turns++ < POST_TURNS) {
      stream.channel.deliveries.schedule(stream)
    } else {
      this.#end()
    }
  }

  /** Sends what was refused before; false if it is refused again. */
  resume(): boolean {
    return !this.#isCompletionOwed || this.#sendCompletion()
  }

  #end(): void {
    this.#source = undefined
    if (!this.#sendCompletion()) this.#stream.channel.scheduleSend(this.#stream)
  }

  #sendCompletion(): boolean {
    const { channel, peerId, receiving } = this.#stream
    const isOut = sendReadCompleted(channel.channel, peerId, receiving.sequence, receiving.reported)
    this.#isCompletionOwed = !isOut
    if (isOut) receiving.noteReported()
    return isOut
  }
}
