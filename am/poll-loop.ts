import { yieldCore } from '../nic/index.ts'

/** How many polls may pass between two looks at the clock: those that find nothing are many and short. */
const EMPTY_POLLS = 64
const BUSY_POLLS = 4
/** After so many polls in a row that found nothing the core is offered to whoever needs it, perhaps the peer. */
const YIELD_POLLS = 512
/** How often a program that polls asks whether its peers live. */
const HEAR_MS = 10

/** A loop of polls may keep the event loop from running, which would tell of the end of a peer. */
export class PollLoop {
  #emptyPolls = 0
  #busyPolls = 0
  #heardAtMs = 0

  /** After each poll. */
  handlePoll(handled: number, peers: { hearNow(): void }): void {
    if (handled > 0) {
      this.#emptyPolls = 0
      if (++this.#busyPolls % BUSY_POLLS !== 0) return
    } else {
      if (++this.#emptyPolls % EMPTY_POLLS !== 0) return
      if (this.#emptyPolls % YIELD_POLLS === 0) yieldCore()
    }
    const nowMs = performance.now()
    if (nowMs < this.#heardAtMs + HEAR_MS) return
    this.#heardAtMs = nowMs
    peers.hearNow()
  }
}
