/**
 * A function that the event loop itself calls, with no JavaScript below it, once in each turn while it is started: after
 * the turn's I/O and before its immediates, where a program expects what comes from sockets. Meanwhile the loop does not wait.
 *
 * A worker thread may be stopped with an active handle, which would abort the process: only the main thread has this.
 */
import { isMainThread } from 'node:worker_threads'
import { loadLibc } from './libc.ts'

export interface IoPhase {
  /** From now on; it keeps the process alive. */
  start(): void
  stop(): void
  /** Whether the event loop would wait for I/O now if this were stopped: no immediate, no timer and no closed handle is due. */
  wouldWait(): boolean
  /** How often the event loop has begun to look for I/O, modulo 2^32; NaN, which equals nothing, if it does not say. */
  lookCount(): number
}

/** `callback` must not throw. Undefined where there is no such thing. */
export function openIoPhase(callback: () => void): IoPhase | undefined {
  return isMainThread ? loadLibc().libc?.openIoPhase?.(callback) : undefined
}
