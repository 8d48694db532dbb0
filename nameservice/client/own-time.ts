/** What a client takes from the process that it runs in. The simulator gives its own to each simulated process. */
import { type Clock, realClock } from '../../nic/clock.ts'

export interface OwnTime {
  readonly clock: Clock
  /** From 0 up to, not including, 1. */
  random(): number
}

export const ownTime: OwnTime = { clock: realClock, random: () => Math.random() }
