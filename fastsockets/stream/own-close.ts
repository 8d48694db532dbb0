import type { Stream } from './stream.ts'
import { CLOSE_DONE, CLOSE_EARLY, CLOSE_RESET } from './stream-layout.ts'
import { sendClose } from './stream-messages.ts'

/** The CLOSE that this side owes the peer, once its program has closed the socket. */
export class OwnClose {
  /** It is wanted, and not out yet: the first, or a second one that says that it is a reset. */
  isOwed = false
  /** The first is out. */
  isOut = false
  hasBegun = false
  readonly #stream: Stream
  #how = CLOSE_DONE
  #received = 0

  constructor(stream: Stream) {
    this.#stream = stream
  }

  get isReset(): boolean {
    return this.#how === CLOSE_RESET
  }

  /** How it is closed, and what had come by then. `isEarly`: the program had not looked for data. */
  decide(isReset: boolean, isEarly: boolean, received: number): void {
    this.#how = isReset ? CLOSE_RESET : isEarly ? CLOSE_EARLY : CLOSE_DONE
    this.#received = received
  }

  /** A close that was none becomes a reset. */
  turnIntoReset(): void {
    this.#how = CLOSE_RESET
  }

  /** Behind what was taken of the program. */
  send(): void {
    const { channel, outgoing } = this.#stream
    this.hasBegun = true
    this.isOwed = true
    if (channel.isOpen && outgoing.hasUnsent) return
    const mayGo = !channel.isOpen || this.#stream.fetches.resume()
    this.isOwed = !mayGo || (channel.isOpen && !sendClose(this.#stream, this.#how, this.#received))
    if (this.isOwed) channel.scheduleSend(this.#stream)
    else this.isOut = true
  }
}
