import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let collect: (() => void) | undefined

/** Collects all garbage, also what a WeakRef has held on to until the end of its turn. */
export async function collectGarbage(): Promise<void> {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as () => void
  }
  await nextTurn()
  collect()
  await nextTurn()
}

/** Bytes of objects and buffers that somebody refers to. */
export async function liveMemory(): Promise<number> {
  await collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
