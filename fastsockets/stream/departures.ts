/**
 * What dead peers leave behind: messages in their rings, and the ends of their sockets. An iteration of the event loop spends `SHARE_MS`
 * on all of it, however many peers die at once and whatever they have sent; the rest follows in the next ones.
 */
import type { Clock } from '../../nic/clock.ts'

const SHARE_MS = 1
/** A program that polls may keep the event loop from its next iteration for ever: then there is a new share after so long. */
const POLLING_MS = 10

export class Departures {
  private readonly clock: Clock
  /** The end of this iteration's share. */
  private endsMs = Number.NEGATIVE_INFINITY
  private readonly waiting: (() => void)[] = []
  /** The next iteration has a new share. */
  private isDue = false

  constructor(clock: Clock) {
    this.clock = clock
  }

  /** Whether this iteration may go on. */
  hasTime(): boolean {
    const nowMs = this.clock.now()
    if (!this.isDue || nowMs >= this.endsMs + POLLING_MS) this.endsMs = nowMs + SHARE_MS
    if (!this.isDue) this.schedule()
    return nowMs < this.endsMs
  }

  /** Calls `action` in the next iteration, which has one share for all actions. */
  goOnLater(action: () => void): void {
    this.waiting.push(action)
    if (!this.isDue) this.schedule()
  }

  private schedule(): void {
    this.isDue = true
    this.clock.setImmediate(this.goOn)
  }

  private readonly goOn = (): void => {
    this.endsMs = this.clock.now() + SHARE_MS
    try {
      for (let left = this.waiting.length; left > 0; left--) this.waiting.shift()?.()
    } finally {
      // Also if a listener of the program's has thrown.
      this.isDue = false
      if (this.waiting.length > 0) this.schedule()
    }
  }
}
