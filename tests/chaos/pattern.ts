/** A stream of which every byte says where it belongs, in pieces of all sizes. */
import type { Socket } from 'node:net'
import { patternAt } from '../support/pattern.ts'

const SIZES = [1, 64, 3000, 64 * 1024, 200_000] as const
/** More than a window and a ring: the writer has to wait for its reader. */
export const PATTERN_BYTES = 3_000_000

/** Writes the stream and ends it. */
export class PatternWriter {
  readonly #socket: Socket
  #position = 0
  #pieces = 0

  constructor(socket: Socket) {
    this.#socket = socket
  }

  write(): void {
    for (;;) {
      const left = PATTERN_BYTES - this.#position
      if (left === 0) return void this.#socket.end()
      const length = Math.min(left, SIZES[this.#pieces++ % SIZES.length] as number)
      const piece = patternAt(this.#position, length)
      this.#position += length
      if (!this.#socket.write(piece)) break
    }
    this.#socket.once('drain', () => this.write())
  }
}

/** Reads it, and knows the first byte that was not the next. */
export class PatternReader {
  position = 0
  wrongAt = -1

  constructor(socket: Socket) {
    socket.on('data', data => {
      if (this.wrongAt < 0 && !data.equals(patternAt(this.position, data.length)))
        this.wrongAt = this.position
      this.position += data.length
    })
  }
}
