import { type Clock, realClock } from '../nic/clock.ts'
import { yieldCore } from '../nic/index.ts'

/** Empty polls in a row after which the thread yields its core, perhaps to the peer. */
const YIELD_POLLS = 512
/** Interval in ms at which a program that polls checks whether its peers live. */
const CHECK_MS = 10
/** Most messages and empty polls between two reads of the clock: a read takes as long as a poll. */
const STRIDE_MAX = 512
/** If two reads of the clock are closer together than this, the next ones are half as frequent. */
const LOOK_MS = 1

/**
 * A loop of polls may keep the event loop from running, which would detect the end of a peer. A loop that only
 * polls reads the clock seldom; one that computes in between reads it at every poll.
 */
export class PollLoop {
  #emptyPolls = 0
  #stride = 1
  #left = 1
  /** In an array: a field that often gets another fraction allocates. */
  readonly #lookedAtMs = new Float64Array(1)
  #checkedAtMs = 0
  readonly #clock: Clock

  constructor(clock: Clock = realClock) {
    this.#clock = clock
  }

  /** Hot: after each poll. */
  handlePoll(handled: number, peers: { checkNow(): void }): void {
    if (handled > 0) this.#emptyPolls = 0
    else if (++this.#emptyPolls % YIELD_POLLS === 0) yieldCore()
    this.#left -= handled > 0 ? handled : 1
    if (this.#left <= 0) this.#look(peers)
  }

  #look(peers: { checkNow(): void }): void {
    const nowMs = this.#clock.now()
    const isBusy = nowMs - (this.#lookedAtMs[0] as number) < LOOK_MS
    this.#stride = isBusy ? Math.min(STRIDE_MAX, 2 * this.#stride) : 1
    this.#left = this.#stride
    this.#lookedAtMs[0] = nowMs
    if (nowMs < this.#checkedAtMs + CHECK_MS) return
    this.#checkedAtMs = nowMs
    peers.checkNow()
  }
}
