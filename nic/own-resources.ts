/**
 * Asynchronous resources that we make for ourselves. Programs hear of each new resource by `createHook` of
 * `node:async_hooks`; detectors of open handles (jest, why-is-node-running) name what is still open by it. Ours are not
 * the program's, and relinked programs do not hear of them (fastsockets/host/own-hooks.ts).
 */
let hiddenDepth = 0

/** Runs `make`; no hook of the program hears of the resources that it makes. */
export function makeHidden<T>(make: () => T): T {
  hiddenDepth++
  try {
    return make()
  } finally {
    hiddenDepth--
  }
}

/** Whether a resource that is made now is hidden. */
export function isHidden(): boolean {
  return hiddenDepth > 0
}
