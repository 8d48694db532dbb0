/**
 * Decides whether a thread polls on after the last message, or sleeps until a doorbell rings.
 *
 * Spinning pays where the next message comes sooner than two wake-ups through the kernel take, as in a ping-pong
 * or a busy server. With one message a millisecond it only burns a core. The rule keeps a score. A message soon
 * after another raises the score; a pause, or a spin in vain, lowers it by more. Below a threshold the thread does
 * not spin. A ping-pong of two sleeping threads still has short pauses, so the score recovers.
 */
import { CoreContention } from './core-contention.ts'

/**
 * Longest time to spin after the last activity: the cost of about two wake-ups through the kernel, one on each
 * side.
 */
export const SPIN_MS_MAX = 0.1
/** A message within this time raises the score: a peer that has to be woken, and answers at once, takes no longer. */
const CLOSE_MS = 0.3
const SCORE_MAX = 16
/** Below this score the thread does not spin. */
const SCORE_MIN = 4
/** Score of a new thread: enough for a few spins in vain. */
const SCORE_FIRST = 8
/** A pause or a spin in vain lowers the score by this; a close message raises it by 1. */
const COST_OF_PAUSE = 4

export class SpinRule {
  private readonly contention: Pick<CoreContention, 'isContended'>
  private score = SCORE_FIRST
  private arrivedAtMs = 0

  constructor(contention: Pick<CoreContention, 'isContended'> = new CoreContention()) {
    this.contention = contention
  }

  /** Called once in each turn. Core contention is checked only if the score allows spinning. */
  maySpin(nowMs: number): boolean {
    return this.score >= SCORE_MIN && !this.contention.isContended(nowMs)
  }

  /** Messages were found in a turn that began at `nowMs`. */
  noteArrival(nowMs: number): void {
    const isClose = nowMs - this.arrivedAtMs < CLOSE_MS
    this.arrivedAtMs = nowMs
    if (isClose) this.score = Math.min(SCORE_MAX, this.score + 1)
    else this.lower()
  }

  /** The thread has spun in vain and goes to sleep. */
  noteVain(): void {
    this.lower()
  }

  private lower(): void {
    this.score = Math.max(0, this.score - COST_OF_PAUSE)
  }
}
