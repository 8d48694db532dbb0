import { copyBytes } from '../../nic/index.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import { LENT_MAX, LENT_MIN, lend } from './lent-memory.ts'
import type { Stream } from './stream.ts'

/** Small messages of one turn are gathered here, and become one 'data'. */
const GATHERED_MAX = 64 * 1024
/** A message of at least this size is not gathered. */
const GATHERED_MESSAGE_MAX = 8 * 1024

const EMPTY = Buffer.alloc(0)
/** Where small pieces for native code lie, one behind the other. None is at its beginning: see `isShared`. */
const SHARED_SIZE = 64 * 1024
const SHARED_START = 8
/** What V8 keeps among its objects: an own memory that costs nothing. */
const IN_HEAP_MAX = 64

let shared = EMPTY
let sharedAt = 0

/** Native code copies what it is given: its pieces need no memory of their own, which would take longer to make than the copy. */
function allocateForNative(length: number): Buffer {
  if (length > IN_HEAP_MAX && length < GATHERED_MESSAGE_MAX) return allocateShared(length)
  return length >= LENT_MIN && length <= LENT_MAX ? lend(length) : allocateFresh(length)
}

function allocateShared(length: number): Buffer {
  if (sharedAt + length > shared.length) {
    shared = allocateFresh(SHARED_SIZE)
    sharedAt = SHARED_START
  }
  sharedAt += length
  return shared.subarray(sharedAt - length, sharedAt)
}

/** Whether others lie in the same memory, now or later: such a piece is not for a program. */
export function isShared(piece: Buffer): boolean {
  return piece.byteOffset > 0
}

/**
 * Bytes for sockets that read, copied out of the ring and on their way to the program, in the order of arrival. Each piece that a
 * program gets has memory of its own, as from libuv: it may look at all of it, and may transfer it.
 */
export class PostedBytes {
  /** What `takeNext` has found. */
  stream: Stream | undefined
  bytes: Buffer = EMPTY
  #gathered = EMPTY
  /** The stream whose small messages are being gathered, and how many bytes there are. */
  #run: Stream | undefined
  #runLength = 0
  /** Pieces that are complete, and whose; handed over from `#readyIndex` on. */
  readonly #readyStreams: (Stream | undefined)[] = []
  readonly #readyBytes: Buffer[] = []
  #readyIndex = 0
  /** The arrays stay as long as they have been: to shorten one is a call of V8's runtime. */
  #readyCount = 0

  /** Nothing is complete. */
  get isEmpty(): boolean {
    return this.#readyCount === 0
  }

  /** Nothing has come at all. */
  get isIdle(): boolean {
    return this.#run === undefined && this.#readyCount === 0
  }

  add(stream: Stream, bytes: Uint8Array, offset: number, length: number): void {
    if (length >= GATHERED_MESSAGE_MAX) {
      this.endRun()
      stream.postedCount++
      this.#makeReady(stream, bytes, offset, length)
      return
    }
    if (this.#run !== stream || this.#runLength + length > GATHERED_MAX) {
      this.endRun()
      if (this.#gathered === EMPTY) this.#gathered = allocateFresh(GATHERED_MAX)
      this.#run = stream
      stream.postedCount++
    }
    copyBytes(bytes, offset, this.#gathered, this.#runLength, length)
    this.#runLength += length
  }

  /** Finds the next piece; false if there is none. What comes meanwhile queues behind. */
  takeNext(): boolean {
    if (this.#readyIndex === this.#readyCount) this.endRun()
    if (this.#readyIndex === this.#readyCount) {
      this.#readyIndex = 0
      this.#readyCount = 0
      return false
    }
    const at = this.#readyIndex++
    this.stream = this.#readyStreams[at] as Stream
    this.bytes = this.#readyBytes[at] as Buffer
    this.#readyStreams[at] = undefined
    this.#readyBytes[at] = EMPTY
    this.stream.postedCount--
    return true
  }

  /** The gathered bytes are complete: the next ones are another stream's, or there are none. */
  endRun(): void {
    const stream = this.#run
    if (stream === undefined) return
    this.#run = undefined
    this.#makeReady(stream, this.#gathered, 0, this.#runLength)
    this.#runLength = 0
  }

  /** A piece that the stream counts already: what comes next must not overtake it. */
  #makeReady(stream: Stream, bytes: Uint8Array, offset: number, length: number): void {
    const piece = stream.sink?.isNative === true ? allocateForNative(length) : allocateFresh(length)
    copyBytes(bytes, offset, piece, 0, length)
    this.#readyStreams[this.#readyCount] = stream
    this.#readyBytes[this.#readyCount++] = piece
  }
}
