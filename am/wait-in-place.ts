import { yieldCore } from '../nic/index.ts'
import { performance } from '../nic/real-time.ts'
import type { Channel } from './channel.ts'

/** Longest wait. A peer that is at work answers sooner; other work of the event loop is late by as much. */
const WAIT_MS = 0.02
/**
 * Time after which the thread yields its core, once. A warm peer has answered by then; another peer may need this
 * core, or wait for a thread that compiles.
 */
const YIELD_MS = 0.005
/** Looks at memory between two reads of the clock. */
const LOOKS = 16
/** With more channels that move, one of them has work anyway. */
const CHANNELS_MAX = 8
/** Most calls that are skipped after waits in vain. */
const SKIPS_MAX = 63

/**
 * Looks at the memory of all channels until a frame comes. This finds a message some microseconds sooner than an
 * iteration of the event loop, which asks the kernel twice. Each wait in vain halves the frequency of further
 * waits: the peer may need this core, or longer than a wait pays for.
 */
export class WaitInPlace {
  #skips = 0
  #skipsNext = 0

  /**
   * Hot. True if one of `channels` has work. `mayWait` takes longer than a look, and is called only if its answer
   * counts.
   */
  awaitWork(channels: readonly Channel[], mayWait: () => boolean): boolean {
    if (!canTell(channels)) return false
    if (hasWork(channels)) return mayWait()
    if (this.#skips > 0) {
      this.#skips--
      return false
    }
    if (!mayWait()) return false
    const begunMs = performance.now()
    let waitedMs = 0
    let hasYielded = false
    while (waitedMs < WAIT_MS) {
      for (let look = 0; look < LOOKS; look++) {
        if (!hasWork(channels)) continue
        this.#skipsNext = 0
        return true
      }
      waitedMs = performance.now() - begunMs
      if (waitedMs < YIELD_MS || hasYielded) continue
      hasYielded = true
      yieldCore()
    }
    this.#skipsNext = Math.min(SKIPS_MAX, 2 * this.#skipsNext + 1)
    this.#skips = this.#skipsNext
    return false
  }
}

function canTell(channels: readonly Channel[]): boolean {
  if (channels.length === 0 || channels.length > CHANNELS_MAX) return false
  for (let at = 0; at < channels.length; at++) {
    const { maySpin, isOver, end } = channels[at] as Channel
    if (!maySpin || isOver || end.hasFrame === undefined) return false
  }
  return true
}

function hasWork(channels: readonly Channel[]): boolean {
  for (let at = 0; at < channels.length; at++) {
    const channel = channels[at] as Channel
    if (channel.isTouched || channel.end.hasFrame?.() === true) return true
  }
  return false
}
