/**
 * Asynchronous resources that we make for ourselves. Programs hear of each new resource by `createHook` of
 * `node:async_hooks`; detectors of open handles (jest, why-is-node-running) name what is still open by it. Ours are not
 * the program's, and relinked programs do not hear of them (fastsockets/host/own-hooks.ts).
 */
let hiddenDepth = 0
/** Server handles of ours: what they accept is made by libuv, when none of our code runs. */
const ownServers = new Set<number>()

/** Runs `make`; no hook of the program hears of the resources that it makes. */
export function makeHidden<T>(make: () => T): T {
  hiddenDepth++
  try {
    return make()
  } finally {
    hiddenDepth--
  }
}

/** Connections that the server handle with this async id accepts are hidden, until `forget` is called. */
export function hideAccepted(serverId: number): { forget(): void } {
  ownServers.add(serverId)
  return { forget: () => void ownServers.delete(serverId) }
}

/** Whether a resource that is made now, because of another one, is hidden. */
export function isHidden(triggerId: number): boolean {
  return hiddenDepth > 0 || ownServers.has(triggerId)
}
