import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let collect: (() => void) | undefined

/** Collects the garbage of now; what a WeakRef has been asked for in this turn stays. */
export function collectNow(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as () => void
  }
  collect()
}

/** Collects all garbage, also what a WeakRef has held on to until the end of its turn. */
export async function collectGarbage(): Promise<void> {
  await nextTurn()
  collectNow()
  await nextTurn()
}

const COLLECTIONS_MAX = 8
/** What two collections in a row may differ by without a third. */
const NOISE = 64 * 1024

/**
 * Bytes of objects and buffers that are still referenced. V8 frees the memory of dead buffers in a thread of its own, which
 * a busy machine may not let run for a while: this collects until it finds no less.
 */
export async function liveMemory(): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < COLLECTIONS_MAX; i++) {
    await collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    const live = heapUsed + external
    if (live > least - NOISE) return Math.min(live, least)
    least = live
  }
  return least
}
