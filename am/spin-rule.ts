/**
 * Whether a thread polls on after the last message, or sleeps until a doorbell rings.
 *
 * To spin pays where the next message comes sooner than two wake-ups through the kernel take, as in a ping-pong or a busy server;
 * with one message a millisecond it only burns a core. The rule keeps a score of the recent past: a message that followed the one
 * before closely raises it, a pause, or a spin in vain, lowers it by more. Below a threshold the thread does not spin. A ping-pong
 * of two sleepers still has short pauses, so the score comes back by itself.
 */
import { CoreContention } from './core-contention.ts'

/** Longest time to spin after the last activity: about what two wake-ups through the kernel cost, one on each side. */
export const SPIN_MS_MAX = 0.1
/** A peer that has to be woken, and answers at once, takes no longer. */
const CLOSE_MS = 0.3
const SCORE_MAX = 16
/** With less there is no spinning. */
const SCORE_MIN = 4
/** A thread begins with a few spins to lose. */
const SCORE_FIRST = 8
/** What a spin in vain costs pays for so many that were not. */
const COST_OF_PAUSE = 4

export class SpinRule {
  readonly #contention: Pick<CoreContention, 'isContended'>
  #score = SCORE_FIRST
  #arrivedAtMs = 0

  constructor(contention: Pick<CoreContention, 'isContended'> = new CoreContention()) {
    this.#contention = contention
  }

  /** Asked once in each turn. The queue for the cores is looked at only if it matters. */
  maySpin(nowMs: number): boolean {
    return this.#score >= SCORE_MIN && !this.#contention.isContended(nowMs)
  }

  /** Messages were found in a turn that began at `nowMs`. */
  noteArrival(nowMs: number): void {
    const isClose = nowMs - this.#arrivedAtMs < CLOSE_MS
    this.#arrivedAtMs = nowMs
    if (isClose) this.#score = Math.min(SCORE_MAX, this.#score + 1)
    else this.#lower()
  }

  /** The thread has spun, and goes to sleep all the same. */
  noteVain(): void {
    this.#lower()
  }

  #lower(): void {
    this.#score = Math.max(0, this.#score - COST_OF_PAUSE)
  }
}
