/**
 * Raises `Error.stackTraceLimit` during a turn. V8 records ten frames of an error by default. Listeners that a turn
 * calls have our frames below them, where plain Node has none. Without the raise, our frames would displace the async
 * frames of the program's awaiting functions.
 */

/** Upper bound of our frames below a listener. */
const OWN_CALLS = 12

let given = 0
let raised = 0

/** Holds until `restoreStackLimit`. A limit of 0 or a deleted one stays. */
export function raiseStackLimit(): void {
  const limit = Error.stackTraceLimit
  // Equal to `raised`: the program has restored a value that it read during an earlier turn.
  if (!(limit > 0) || limit === raised) return
  if (!setLimit(limit + OWN_CALLS)) return
  given = limit
  raised = limit + OWN_CALLS
}

/** A limit that the program has set during the turn stays. */
export function restoreStackLimit(): void {
  if (raised > 0 && Error.stackTraceLimit === raised) setLimit(given)
}

/** False if the program has frozen `Error`. An assignment is faster than `Reflect.set`. */
function setLimit(limit: number): boolean {
  try {
    Error.stackTraceLimit = limit
    return true
  } catch {
    return false
  }
}
