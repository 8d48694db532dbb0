/**
 * Ends a polling process whose parent has died. A polling loop never runs the event loop, and so never sees the end of
 * standard input: it would use a core for ever.
 */
const LOOK_EVERY = 1 << 18
const parent = process.ppid
let polls = 0

/** Call with each poll. */
export function leaveWithParent(): void {
  polls = (polls + 1) % LOOK_EVERY
  if (polls === 0 && process.ppid !== parent) process.exit(1)
}
