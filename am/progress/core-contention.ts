/**
 * Decides whether other threads need this thread's core so much that it must not spin. A spinning thread keeps the
 * core from them, perhaps from its own peer. The scheduler then lets it wait for milliseconds when it has work,
 * while a thread that slept runs at once when it is woken. So spinning stops while threads queue for the cores. A
 * trial follows after a pause, which doubles each time that the queue is still there.
 */
import { type CoreTimes, readCoreTimes } from '../../nic/index.ts'

/** Interval of samples while a thread spins. */
const SAMPLE_MS = 32
/**
 * Interval of samples after a bad one, and after a pause. It is short because each trial takes the core from the
 * others. The compiler and the collector may have had the core for most of one sample, but hardly of two in a row.
 */
const TRIAL_MS = 8
/** Below this share of the interval, on a core or waiting for one, a sample is ignored: the thread has slept. */
const RUNNABLE_SHARE_MIN = 0.5
/**
 * Share of its runnable time that a spinning thread may wait for its core, although it yields after each empty
 * turn. One program more than there are cores takes half of it: spinning still pays then.
 */
const WAITED_SHARE_MAX = 0.65
/**
 * Good samples in a row after which the next pause is a short one again. One is not enough: a spinning thread does
 * not wait while the others pause, so all of them would begin again, one after the other.
 */
const TRIALS = 16
const PAUSE_MS_MIN = 128
const PAUSE_MS_MAX = 4096

export class CoreContention {
  private readonly readTimes: () => CoreTimes | 'never' | undefined
  private sampledAtMs = Number.NEGATIVE_INFINITY
  private sampleMs = SAMPLE_MS
  private times: CoreTimes | undefined
  private goodInARow = 0
  /** The last sample found a queue: a second one in a row begins a pause. */
  private isSuspected = false
  private pausedUntilMs = Number.NEGATIVE_INFINITY
  private pauseMs = PAUSE_MS_MIN

  constructor(readTimes: () => CoreTimes | 'never' | undefined = readCoreTimes) {
    this.readTimes = readTimes
  }

  /** Called on each turn of a poller. */
  isContended(nowMs: number): boolean {
    if (nowMs < this.pausedUntilMs) return true
    if (nowMs - this.sampledAtMs >= this.sampleMs) this.sample(nowMs)
    return nowMs < this.pausedUntilMs
  }

  private sample(nowMs: number): void {
    this.sampledAtMs = nowMs
    const before = this.times
    const now = this.readTimes()
    if (now === 'never') this.sampledAtMs = Number.POSITIVE_INFINITY
    if (now === 'never' || now === undefined) return
    if (before === undefined) {
      this.times = now
      return
    }
    const waitedMs = now.waitedMs - before.waitedMs
    const runnableMs = now.ranMs - before.ranMs + waitedMs
    if (runnableMs < this.sampleMs * RUNNABLE_SHARE_MIN) {
      this.isSuspected = false
      return
    }
    this.times = now
    if (waitedMs <= runnableMs * WAITED_SHARE_MAX) this.noteGood()
    else this.noteBad(nowMs)
  }

  private noteGood(): void {
    this.isSuspected = false
    if (++this.goodInARow < TRIALS) return
    this.sampleMs = SAMPLE_MS
    this.pauseMs = PAUSE_MS_MIN
  }

  private noteBad(nowMs: number): void {
    this.goodInARow = 0
    this.sampleMs = TRIAL_MS
    this.isSuspected = !this.isSuspected
    if (this.isSuspected) return
    this.pausedUntilMs = nowMs + this.pauseMs
    this.pauseMs = Math.min(PAUSE_MS_MAX, 2 * this.pauseMs)
    // The pause is not sampled: the scheduler runs sleeping threads at once.
    this.times = undefined
  }
}
