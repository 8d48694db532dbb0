import type { Channel } from '../../am/channels.ts'
import { nextTick } from '../../nic/real-time.ts'

/** How often a dead peer's queue is polled until nothing more comes out of it: more than fits into a ring. */
const DRAIN_TURNS_MAX = 4096
const DRAIN_MESSAGES = 64

/** Takes in what a peer that is gone has written before. */
export function drainRing(channel: Channel): void {
  // A peer may have ended its lifeline, and live, and write on and on.
  channel.end.expectEnd?.()
  for (let turn = 0; turn < DRAIN_TURNS_MAX && drainSome(channel); turn++);
}

/** Whether anything was left in the ring. What a listener throws goes to the program a moment later. */
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
