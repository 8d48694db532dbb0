/**
 * Warms a new pair of processes with the operations that will be measured. Before that nothing is
 * compiled, heaps are small, and the pollers have not adapted their spin times.
 */
import type { Half } from './half.ts'
import { LARGE, SMALL } from './sizes.ts'
import type { SuiteContext } from './suite.ts'

export interface Workload {
  readonly kind: 'pingPong' | 'stream'
  readonly size: number
}

const MS = 1000
const QUICK_MS = 20

export function warmUpMsOf({ isQuick }: SuiteContext): number {
  return isQuick ? QUICK_MS : MS
}

/** All of them together take that time. */
export async function warmUp(
  context: SuiteContext,
  client: Half,
  workloads: readonly Workload[],
): Promise<void> {
  const ms = warmUpMsOf(context) / workloads.length
  for (const { kind, size } of workloads) await client.ask({ ask: kind, size, warmUpMs: 0, ms })
}

/** A small size and a large one of those that will be measured. */
export function workloadsOf(kind: Workload['kind'], sizes: readonly number[]): Workload[] {
  return [SMALL, LARGE].filter(size => sizes.includes(size)).map(size => ({ kind, size }))
}
