/**
 * A callback that libuv calls in each iteration of the event loop while it is started, with no JavaScript on the stack:
 * after the poll phase and before the immediates, where programs expect data from sockets. While it is started the loop
 * does not wait for I/O.
 *
 * Main thread only: terminating a worker thread with an active handle of this kind would abort the process.
 */
import { isMainThread } from 'node:worker_threads'
import { loadLibc } from './libc.ts'

export interface IoPhase {
  /** Calls the callback in every iteration from now on. Keeps the process alive. */
  start(): void
  stop(): void
  /** Whether the event loop would wait for I/O if this were stopped: no immediate, timer or close callback is due. */
  wouldWait(): boolean
  /**
   * How often the event loop has entered its poll phase, modulo 2^32 (`loop_count` of uv_metrics_info). NaN, which
   * equals no count, if libuv does not report it.
   */
  lookCount(): number
}

/** `callback` must not throw. Undefined in worker threads, and where libuv's functions cannot be bound. */
export function openIoPhase(callback: () => void): IoPhase | undefined {
  return isMainThread ? loadLibc().libc?.openIoPhase?.(callback) : undefined
}
