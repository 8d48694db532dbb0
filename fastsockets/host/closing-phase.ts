/**
 * The moment at which libuv tells of handles that were closed: after the immediates of this turn of the event loop, the
 * last closed first.
 */
import { makeHidden } from '../../nic/index.ts'
import { drainTicks, type TcpHandle, tellUncaught } from './node-internals.ts'

let closings: (() => void)[] = []

/** All that close in one turn share one native handle. */
export function runInClosingPhase(createTcp: () => TcpHandle, action: () => void): void {
  if (closings.length === 0) makeHidden(createTcp).close(() => runAll(createTcp))
  closings.push(action)
}

function runAll(createTcp: () => TcpHandle): void {
  const due = closings
  // What closes now has the next turn.
  closings = []
  try {
    for (let action = due.pop(); action !== undefined; action = due.pop()) {
      try {
        action()
        // As after each callback of a handle of its own.
        drainTicks()
      } catch (error) {
        // A listener threw. libuv tells the program, and goes on with the next handle.
        if (due.length === 0 || !tellUncaught(error)) throw error
      }
    }
  } finally {
    // Only if the program does not survive it.
    for (const action of due) runInClosingPhase(createTcp, action)
  }
}
