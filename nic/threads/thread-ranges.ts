/**
 * Address ranges of workers that are gone. `worker.terminate()` runs no code in the worker, so nobody there would unmap
 * what it had mapped. A worker notes its ranges in the table of threads, and the thread that started it unmaps them when
 * it has ended, however it ended.
 */

import { threadId } from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import { loadLibc } from '../posix/libc.ts'
import { RANGES_MAX } from './thread-layout.ts'
import { onWorkerEnd, ownRow, rangeAddresses, rangeLengths, rangeOwners } from './thread-table.ts'

/** Says that this thread has reserved a range, which it keeps until it ends. */
export function noteRange(address: bigint, length: number): void {
  if (ownRow < 0) return
  for (let row = 0; row < RANGES_MAX; row++) {
    if (atomics.compareExchange(rangeOwners, row, 0, threadId) !== 0) continue
    rangeLengths[row] = length
    rangeAddresses[row] = Number(address)
    return
  }
}

onWorkerEnd(id => {
  for (let row = 0; row < RANGES_MAX; row++) {
    if (rangeOwners[row] === id) unmapRange(row)
  }
})

function unmapRange(row: number): void {
  const address = BigInt(rangeAddresses[row] as number)
  const length = rangeLengths[row] as number
  // The row first: this thread may be terminated, too, and what is unmapped twice may be somebody else's by then.
  rangeAddresses[row] = 0
  atomics.store(rangeOwners, row, 0)
  if (address !== 0n) loadLibc().libc?.munmap(address, length)
}
