/**
 * Runs close callbacks in libuv's closing phase: after the immediates of the same event loop iteration, the handle
 * closed last first.
 */
import { makeHidden } from '../../nic/index.ts'
import { drainTicks, reportUncaught, type TcpHandle } from './node-internals.ts'

let closings: (() => void)[] = []

/** Runs `action` in the next closing phase. All actions of one iteration share one native handle. */
export function runInClosingPhase(createTcp: () => TcpHandle, action: () => void): void {
  if (closings.length === 0) makeHidden(createTcp).close(() => runAll(createTcp))
  closings.push(action)
}

function runAll(createTcp: () => TcpHandle): void {
  const due = closings
  // Handles that an action closes belong to the closing phase of the next iteration.
  closings = []
  try {
    for (let action = due.pop(); action !== undefined; action = due.pop()) {
      try {
        action()
        // Node runs ticks after each close callback of libuv.
        drainTicks()
      } catch (error) {
        // As in libuv: the program handles the error, and the next close callback runs.
        if (due.length === 0 || !reportUncaught(error)) throw error
      }
    }
  } finally {
    // `due` has entries only if an error went uncaught.
    for (const action of due) runInClosingPhase(createTcp, action)
  }
}
