/**
 * Node notes the ten innermost calls of an error. What a turn of ours runs has our own calls below it, where plain Node has
 * none, and they would take the place of the calls that tell a program most: those of the functions that wait.
 */

/** More than our turn has below what it runs. */
const OWN_CALLS = 12

let given = 0
let raised = 0

/** Until `restoreStackLimit`. Who wants no stacks gets none. */
export function raiseStackLimit(): void {
  const limit = Error.stackTraceLimit
  // The second: somebody has put back what he had found in an earlier turn.
  if (!(limit > 0) || limit === raised) return
  if (!setLimit(limit + OWN_CALLS)) return
  given = limit
  raised = limit + OWN_CALLS
}

/** What the program has set meanwhile stays. */
export function restoreStackLimit(): void {
  if (raised > 0 && Error.stackTraceLimit === raised) setLimit(given)
}

/** False if a program has frozen it. Not by `Reflect.set`, which is slow. */
function setLimit(limit: number): boolean {
  try {
    Error.stackTraceLimit = limit
    return true
  } catch {
    return false
  }
}
