import type { Channel } from '../../am/channels.ts'
import { nextTick } from '../../nic/real-time.ts'
import type { Departures } from './departures.ts'

const DRAIN_MESSAGES = 16

/** Receives what a dead peer has sent before. False if the rest must wait for the next iteration of the event loop. */
export function drainRing(channel: Channel, departures: Departures): boolean {
  do {
    if (!departures.hasTime()) return false
  } while (drainSome(channel))
  return true
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
