/**
 * Whether others want this thread's core so much that it must not spin. A thread that spins keeps the core from them, its
 * peer perhaps, and pays for it: the scheduler lets it wait for milliseconds when it has something to do. One that sleeps
 * is run at once when it is woken. So spinning stops while there is a queue for the cores, and is tried again after a
 * pause, which doubles each time that the queue is still there.
 */
import { type CoreTimes, readCoreTimes } from '../nic/index.ts'

/**
 * How often a spinning thread looks. The collector's and the compiler's threads take a core for some milliseconds: in 32
 * of them, of two busy programs on two cores, at most a half, where eight pairs of programs take 0.7 and more.
 */
const SAMPLE_MS = 32
/**
 * After a pause it looks sooner: while the queue is there, trying costs the others as little as twice that. In so short a
 * time the collector may have the core for most of it, but hardly twice in a row.
 */
const TRIAL_MS = 8
/** With less of that time on a core or waiting for one it says nothing: the thread has slept. */
const RUNNABLE_SHARE_MIN = 0.5
/**
 * The part of its runnable time that a spinning thread may wait for its core, although it yields after each empty turn.
 * One program more than there are cores takes half: it pays to stay awake beside it.
 */
const WAITED_SHARE_MAX = 0.65
/**
 * So many trials in a row must be good, and the next pause is a short one again. One is not enough: among others that
 * pause, one that spins is not kept waiting, and they all would begin again, one after the other.
 */
const TRIALS = 16
const PAUSE_MS_MIN = 128
const PAUSE_MS_MAX = 4096

export class CoreContention {
  readonly #readTimes: () => CoreTimes | 'never' | undefined
  #sampledAtMs = Number.NEGATIVE_INFINITY
  #sampleMs = SAMPLE_MS
  #times: CoreTimes | undefined
  #goodInARow = 0
  /** The last look, a short one, found a queue. */
  #isSuspected = false
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #pauseMs = PAUSE_MS_MIN

  constructor(readTimes: () => CoreTimes | 'never' | undefined = readCoreTimes) {
    this.#readTimes = readTimes
  }

  /** To be asked on each turn of a poller. */
  isContended(nowMs: number): boolean {
    if (nowMs < this.#pausedUntilMs) return true
    if (nowMs - this.#sampledAtMs >= this.#sampleMs) this.#sample(nowMs)
    return nowMs < this.#pausedUntilMs
  }

  #sample(nowMs: number): void {
    this.#sampledAtMs = nowMs
    const before = this.#times
    const now = this.#readTimes()
    if (now === 'never') this.#sampledAtMs = Number.POSITIVE_INFINITY
    if (now === 'never' || now === undefined) return
    if (before === undefined) {
      this.#times = now
      return
    }
    const waitedMs = now.waitedMs - before.waitedMs
    const runnableMs = now.ranMs - before.ranMs + waitedMs
    if (runnableMs < this.#sampleMs * RUNNABLE_SHARE_MIN) {
      this.#isSuspected = false
      return
    }
    this.#times = now
    if (waitedMs <= runnableMs * WAITED_SHARE_MAX) this.#noteGood()
    else this.#noteBad(nowMs)
  }

  #noteGood(): void {
    this.#isSuspected = false
    if (++this.#goodInARow < TRIALS) return
    this.#sampleMs = SAMPLE_MS
    this.#pauseMs = PAUSE_MS_MIN
  }

  #noteBad(nowMs: number): void {
    this.#goodInARow = 0
    this.#isSuspected = !this.#isSuspected && this.#sampleMs === TRIAL_MS
    if (this.#isSuspected) return
    this.#sampleMs = TRIAL_MS
    this.#pausedUntilMs = nowMs + this.#pauseMs
    this.#pauseMs = Math.min(PAUSE_MS_MAX, 2 * this.#pauseMs)
    // What happens in the pause is not judged: sleepers are treated well.
    this.#times = undefined
  }
}
