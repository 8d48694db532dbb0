/** One message at a time in a polling loop, one way or both, over a raw socket. */
import type { RawSocket } from '../../raw/index.ts'

/**
 * How long a loop may last before the event loop runs: without the C library bytes move only then, and time-outs need
 * it too.
 */
const POLL_MS = 2
/** Polls between two readings of the clock. */
const LOOKS = 1024

export class PolledMessage {
  readonly #socket: RawSocket
  readonly #message: Buffer
  readonly #back: Buffer | undefined
  #sent = 0
  #received = 0

  /** `back` takes the returned bytes piece by piece; without it none are expected. */
  constructor(socket: RawSocket, message: Buffer, back?: Buffer) {
    this.#socket = socket
    this.#message = message
    this.#back = back
  }

  begin(): void {
    this.#sent = 0
    this.#received = 0
  }

  /** False if the message is incomplete, and the event loop must run before the next call. */
  poll(): boolean {
    let untilMs = Number.POSITIVE_INFINITY
    for (let looks = 1; !this.#look(); looks++) {
      if (looks % LOOKS !== 0) continue
      const nowMs = performance.now()
      if (looks === LOOKS) untilMs = nowMs + POLL_MS
      else if (nowMs > untilMs) return false
    }
    return true
  }

  /**
   * True when complete. Sends between receives: a message larger than the windows returns while it is still being
   * sent.
   */
  #look(): boolean {
    const message = this.#message
    const sent = this.#sent
    if (sent < message.length)
      this.#sent += this.#socket.trySend(sent === 0 ? message : message.subarray(sent))
    if (this.#back === undefined) return this.#sent === message.length
    const length = this.#socket.tryRecv(this.#back)
    if (length === 0) throw new Error('the server hung up')
    this.#received += length ?? 0
    return this.#received >= message.length
  }
}
