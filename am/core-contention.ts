/**
 * Whether others want this thread's core so much that it must not spin. A thread that spins keeps the core from them, its
 * peer perhaps, and pays for it: the scheduler lets it wait for milliseconds when it has something to do. One that sleeps
 * is run at once when it is woken. So spinning stops while there is a queue for the cores, and is tried again after a
 * pause, which doubles each time that the queue is still there.
 */
import { type CoreTimes, readCoreTimes } from '../nic/index.ts'

/** How often a spinning thread looks. */
const SAMPLE_MS = 4
/** Less time on a core or waiting for one says nothing: the thread has slept. */
const RUNNABLE_MS_MIN = 2
/**
 * The part of its runnable time that a spinning thread may wait for its core, although it yields after each empty turn.
 * The threads of the collector and the compiler, the peer's too, take less, and one program more than there are cores
 * takes half: it pays to stay awake beside them.
 */
const WAITED_SHARE_MAX = 0.65
/** So many samples in a row must be above that; after a pause one is enough … */
const SAMPLES_IN_A_ROW = 4
/**
 * … until so many in a row were not: among others that pause, one that spins is not kept waiting, and they all would
 * begin again, one after the other.
 */
const PROBATION_SAMPLES = 64
const PAUSE_MS_MIN = 128
const PAUSE_MS_MAX = 4096

export class CoreContention {
  readonly #readTimes: () => CoreTimes | undefined
  #sampledAtMs = Number.NEGATIVE_INFINITY
  #times: CoreTimes | undefined
  #badInARow = 0
  #goodInARow = 0
  #isOnProbation = false
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #pauseMs = PAUSE_MS_MIN

  constructor(readTimes = readCoreTimes) {
    this.#readTimes = readTimes
  }

  /** To be asked on each turn of a poller. */
  isContended(nowMs: number): boolean {
    if (nowMs < this.#pausedUntilMs) return true
    if (nowMs - this.#sampledAtMs >= SAMPLE_MS) this.#sample(nowMs)
    return nowMs < this.#pausedUntilMs
  }

  #sample(nowMs: number): void {
    this.#sampledAtMs = nowMs
    const before = this.#times
    const now = this.#readTimes()
    if (now === undefined) {
      // Where the system does not say it never will.
      this.#sampledAtMs = Number.POSITIVE_INFINITY
      return
    }
    if (before === undefined) {
      this.#times = now
      return
    }
    const waitedMs = now.waitedMs - before.waitedMs
    const runnableMs = now.ranMs - before.ranMs + waitedMs
    if (runnableMs < RUNNABLE_MS_MIN) return
    this.#times = now
    if (waitedMs <= runnableMs * WAITED_SHARE_MAX) this.#noteGood()
    else this.#noteBad(nowMs)
  }

  #noteGood(): void {
    this.#badInARow = 0
    if (++this.#goodInARow < PROBATION_SAMPLES) return
    this.#isOnProbation = false
    this.#pauseMs = PAUSE_MS_MIN
  }

  #noteBad(nowMs: number): void {
    this.#goodInARow = 0
    if (++this.#badInARow < SAMPLES_IN_A_ROW && !this.#isOnProbation) return
    this.#isOnProbation = true
    this.#pausedUntilMs = nowMs + this.#pauseMs
    this.#pauseMs = Math.min(PAUSE_MS_MAX, 2 * this.#pauseMs)
    // What happens in the pause is not judged: sleepers are treated well.
    this.#times = undefined
  }
}
