import { copyBytes } from '../../nic/index.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import type { Stream } from './stream.ts'

/** Posted bytes are gathered here, so that small messages in one turn become one 'data'. */
const SLAB_SIZE = 64 * 1024
/** A message of at least this size gets memory of its own. */
const SLAB_MESSAGE_MAX = 8 * 1024

const EMPTY = Buffer.alloc(0)

/** Bytes for sockets that read, copied out of the ring and on their way to the program, in the order of arrival. */
export class PostedBytes {
  /** What `takeNext` has found. */
  stream: Stream | undefined
  bytes: Buffer = EMPTY
  #slab = EMPTY
  /** The stream whose small messages are being gathered, in bytes `#runStart … #runEnd` of the slab. */
  #run: Stream | undefined
  #runStart = 0
  #runEnd = 0
  /** Pieces that are complete, and whose; handed over from `#readyIndex` on. */
  readonly #readyStreams: Stream[] = []
  readonly #readyBytes: Buffer[] = []
  #readyIndex = 0

  /** Nothing is complete. */
  get isEmpty(): boolean {
    return this.#readyStreams.length === 0
  }

  /** Nothing has come at all. */
  get isIdle(): boolean {
    return this.#run === undefined && this.#readyStreams.length === 0
  }

  add(stream: Stream, bytes: Uint8Array, offset: number, length: number): void {
    if (length >= SLAB_MESSAGE_MAX) {
      this.endRun()
      const own = allocateFresh(length)
      own.set(bytes.subarray(offset, offset + length))
      stream.postedCount++
      this.#makeReady(stream, own)
      return
    }
    if (this.#run !== stream || this.#runEnd + length > this.#slab.length) {
      this.endRun()
      if (this.#runEnd + length > this.#slab.length) {
        this.#slab = allocateFresh(SLAB_SIZE)
        this.#runEnd = 0
      }
      this.#run = stream
      stream.postedCount++
      this.#runStart = this.#runEnd
    }
    copyBytes(bytes, offset, this.#slab, this.#runEnd, length)
    this.#runEnd += length
  }

  /** Finds the next piece; false if there is none. What comes meanwhile queues behind. */
  takeNext(): boolean {
    if (this.#readyIndex === this.#readyStreams.length) this.endRun()
    if (this.#readyIndex === this.#readyStreams.length) {
      if (this.#readyIndex === 0) return false
      this.#readyStreams.length = 0
      this.#readyBytes.length = 0
      this.#readyIndex = 0
      return false
    }
    const at = this.#readyIndex++
    this.stream = this.#readyStreams[at] as Stream
    this.bytes = this.#readyBytes[at] as Buffer
    this.stream.postedCount--
    return true
  }

  /** The gathered bytes are complete: the next ones are another stream's, or there are none. */
  endRun(): void {
    const stream = this.#run
    if (stream === undefined) return
    this.#run = undefined
    this.#makeReady(stream, this.#slab.subarray(this.#runStart, this.#runEnd))
  }

  /** A piece that the stream counts already: what comes next must not overtake it. */
  #makeReady(stream: Stream, bytes: Buffer): void {
    this.#readyStreams.push(stream)
    this.#readyBytes.push(bytes)
  }
}
