/** The moment at which libuv tells of handles that were closed: after the immediates of this turn of the event loop. */
import { drainTicks, type TcpHandle } from './node-internals.ts'

let closings: (() => void)[] = []

/** All that close in one turn share one native handle. */
export function runInClosingPhase(createTcp: () => TcpHandle, action: () => void): void {
  if (closings.push(action) === 1) createTcp().close(() => runAll(createTcp))
}

function runAll(createTcp: () => TcpHandle): void {
  const due = closings
  // What closes now has the next turn.
  closings = []
  for (const [i, action] of due.entries()) {
    let isDone = false
    try {
      action()
      // As after each callback of a handle of its own.
      drainTicks()
      isDone = true
    } finally {
      // A listener threw: those behind it are not to blame.
      if (!isDone) for (const later of due.slice(i + 1)) runInClosingPhase(createTcp, later)
    }
  }
}
