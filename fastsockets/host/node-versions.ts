/** Differences between Node 20 and 26 that a program can see; fast sockets follow the version that runs. */
import { createRequire } from 'node:module'
import { expectPart } from '../../nic/parts.ts'

const require = createRequire(import.meta.url)
// Before the first part is required that a bundler has not seen.
expectPart('install', import.meta.url)
const { node, uv } = process.versions

/** What only Node 20 needs; undefined in other versions. */
export const node20 = isAtLeast(node, 21, 0, 0)
  ? undefined
  : (require('./node-20.ts') as typeof import('./node-20.ts'))

/** In Node 20 `maxConnections = 0` is no limit. */
export const ZERO_IS_A_LIMIT = isAtLeast(node, 21, 0, 0)

/** `destroy()` completes pending writes with ECANCELED; Node 20 completes them without an error. */
export const REPORTS_CANCELED_WRITES = isAtLeast(node, 22, 0, 0)

/** libuv 1.52.1 and later report ECONNRESET after late reads; older ones report the end. */
export const REPORTS_LATE_RESETS = isAtLeast(uv, 1, 52, 1)

/** Node 22.12 and later implement `listen({ reusePort })`; older ones bind without the option. */
export const CAN_SHARE_PORTS = isAtLeast(node, 22, 12, 0)

function isAtLeast(version: string, ...least: readonly number[]): boolean {
  const parts = version.split('.').map(part => Number.parseInt(part, 10))
  const at = least.findIndex((part, i) => parts[i] !== part)
  return at === -1 || (parts[at] as number) > (least[at] as number)
}
