/**
 * Marks asynchronous resources of this package. `createHook` of `node:async_hooks` reports each new resource to the
 * program; detectors of open handles (jest, why-is-node-running) list open resources with it. Hooks of relinked
 * programs do not get the marked resources (fastsockets/host/own-hooks.ts).
 */
let hiddenDepth = 0

/** Runs `make`. Resources created during the call are hidden from hooks of the program. */
export function makeHidden<T>(make: () => T): T {
  hiddenDepth++
  try {
    return make()
  } finally {
    hiddenDepth--
  }
}

/** Whether a `makeHidden` call is running. */
export function isHidden(): boolean {
  return hiddenDepth > 0
}
