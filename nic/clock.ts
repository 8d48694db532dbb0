/**
 * The time that a layer lives in. A process has the real one; in the simulator (nic/simulated) each host has its own, so
 * that several run in one thread.
 */
import { performance } from './performance.ts'
import { clearTimeout, setImmediate, setTimeout } from './real-time.ts'

export interface Timer {
  /** Whether the timer keeps the event loop alive; it does at first. */
  ref(): unknown
  unref(): unknown
}

export interface Clock {
  /** Milliseconds since any fixed moment. Never goes back. */
  now(): number
  setTimeout(listener: () => void, delayMs: number): Timer
  clearTimeout(timer: Timer | undefined): void
  /** Calls `listener` in the next iteration of the event loop. */
  setImmediate(listener: () => void): void
}

export const realClock: Clock = {
  now: performance.now,
  setTimeout,
  clearTimeout: timer => clearTimeout(timer as NodeJS.Timeout | undefined),
  setImmediate: listener => void setImmediate(listener),
}

/** A timer that does not keep the event loop alive. */
export function startInBackground(clock: Clock, listener: () => void, delayMs: number): Timer {
  const timer = clock.setTimeout(listener, delayMs)
  timer.unref()
  return timer
}

/** Resolves in the next iteration of the event loop. */
export function nextTurnOf(clock: Clock): Promise<void> {
  return new Promise(resolve => clock.setImmediate(resolve))
}
