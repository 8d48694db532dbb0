import type { Channel } from '../../am/channels.ts'
import { nextTick } from '../../nic/real-time.ts'

const DRAIN_MESSAGES = 16

/** Receives some of what a dead peer has sent before; false if the ring was empty. An error of a listener is thrown in the next tick. */
export function drainSome(channel: Channel): boolean {
  try {
    return channel.progress(DRAIN_MESSAGES) > 0
  } catch (error) {
    nextTick(() => {
      throw error
    })
    return true
  }
}
