import type { Channel } from '../../am/channels.ts'
import { nextTick } from '../../nic/real-time.ts'

/** Most polls of a dead peer's queue: more than fill a ring. */
const DRAIN_TURNS_MAX = 4096
const DRAIN_MESSAGES = 64

/** Receives what a dead peer has sent before. */
export function drainRing(channel: Channel): void {
  // Limited: a peer that has ended its lifeline may live, and go on sending.
  channel.end.expectEnd?.()
  for (let turn = 0; turn < DRAIN_TURNS_MAX && drainSome(channel); turn++);
}

/** True if the ring was not empty. An error of a listener is thrown in the next tick. */
function drainSome(channel: Channel): boolean {
  try {
    return channel.progress(DRAIN_MESSAGES) > 0
  } catch (error) {
    nextTick(() => {
      throw error
    })
    return true
  }
}
