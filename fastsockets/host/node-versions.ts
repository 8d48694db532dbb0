/** Where Nodes of 20 to 26 differ in what a program sees, and we do as the one that runs us. */
const { node, uv } = process.versions

/** To Node 20 `maxConnections = 0` is no limit. */
export const ZERO_IS_A_LIMIT = isAtLeast(node, 21, 0, 0)

/** The callback of a write that its own socket's `destroy()` gives up: ECANCELED, where Node 20 tells it nothing. */
export const TELLS_OF_CANCELED_WRITES = isAtLeast(node, 22, 0, 0)

/** Who reads, late, what was there before a reset: to older libuv the short read was the end, and the reset never told. */
export const TELLS_OF_LATE_RESETS = isAtLeast(uv, 1, 52, 1)

/** `listen({ reusePort })`: older Node binds without it. */
export const CAN_SHARE_PORTS = isAtLeast(node, 22, 12, 0)

function isAtLeast(version: string, ...least: readonly number[]): boolean {
  const parts = version.split('.').map(part => Number.parseInt(part, 10))
  const at = least.findIndex((part, i) => parts[i] !== part)
  return at === -1 || (parts[at] as number) > (least[at] as number)
}
