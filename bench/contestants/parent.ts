/**
 * A loop of polls never lets the event loop run, and so never hears that its standard input has ended: without this, it
 * would keep a core for ever when whoever started it was killed.
 */
const LOOK_EVERY = 1 << 18
const parent = process.ppid
let polls = 0

/** To be called with each poll. */
export function leaveWithParent(): void {
  polls = (polls + 1) % LOOK_EVERY
  if (polls === 0 && process.ppid !== parent) process.exit(1)
}
