import { yieldCore } from '../nic/index.ts'

/** After so many polls in a row that found nothing, the clock is read; and the core is offered to whoever needs it. */
const CLOCK_POLLS = 64
const YIELD_POLLS = 512
/** How often such a loop asks whether its peers live. */
const HEAR_MS = 10

/** A loop of polls that find nothing keeps the event loop from running, and perhaps the peer, too. */
export class EmptyPolls {
  /** In a row. */
  count = 0
  #heardAtMs = 0

  handle(peers: { hearNow(): void }): void {
    this.count++
    if (this.count % CLOCK_POLLS !== 0) return
    if (this.count % YIELD_POLLS === 0) yieldCore()
    const nowMs = performance.now()
    if (nowMs < this.#heardAtMs + HEAR_MS) return
    this.#heardAtMs = nowMs
    peers.hearNow()
  }
}
