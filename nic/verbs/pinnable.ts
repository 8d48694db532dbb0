/**
 * How much memory this process may pin. The rings of connections and the registration cache share it: each uses at most
 * half.
 */
import { readFileSync } from 'node:fs'

/** The limit does not apply to processes with this capability. */
const CAP_IPC_LOCK = 1n << 14n

let pinnable: number | undefined

/** `most`, or half of the memory that may be pinned if that is less. */
export function halfOfPinnable(most: number): number {
  pinnable ??= pinnableBytes(read('/proc/self/limits'), read('/proc/self/status'))
  return Math.min(most, Math.floor(pinnable / 2))
}

/** From `limits` and `status` of /proc; Infinity if they cannot be read. */
export function pinnableBytes(limits: string, status: string): number {
  const soft = /^Max locked memory +(\d+)/m.exec(limits)?.[1]
  const capabilities = BigInt(`0x${/^CapEff:\s*([\da-f]+)/m.exec(status)?.[1] ?? 0}`)
  if (soft === undefined || (capabilities & CAP_IPC_LOCK) !== 0n) return Number.POSITIVE_INFINITY
  return Number(soft)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
