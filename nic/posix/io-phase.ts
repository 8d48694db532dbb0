/**
 * A callback that libuv calls in each iteration of the event loop while it is started, with no JavaScript on the stack:
 * after the poll phase and before the immediates, where programs expect data from sockets. While it is started the loop
 * does not wait for I/O.
 *
 * Main thread only: terminating a worker thread with an active handle of this kind would abort the process.
 */
import { isMainThread } from 'node:worker_threads'
import { loadLibc } from './libc.ts'
import type { IoPhase } from './uv-phase.ts'

export type { IoPhase } from './uv-phase.ts'

/** `callback` must not throw. Undefined in worker threads, and where libuv's functions cannot be bound. */
export function openIoPhase(callback: () => void): IoPhase | undefined {
  return isMainThread ? loadLibc().libc?.openIoPhase?.(callback) : undefined
}
