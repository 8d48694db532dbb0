/**
 * Unmaps the address ranges of ended workers, and closes their descriptors. `worker.terminate()` runs no code in the
 * worker, so the worker itself cannot do that. Each worker notes its ranges in the table of threads; when it has ended
 * for any reason, the thread that started it unmaps them.
 */

import { threadId } from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import { loadLibc } from '../posix/libc.ts'
import { RANGES_MAX } from './thread-layout.ts'
import { onWorkerEnd, ownRow, rangeAddresses, rangeLengths, rangeOwners } from './thread-table.ts'

/** Length in a row whose address is a descriptor. */
const DESCRIPTOR = -1

/** Notes a descriptor that this thread keeps until it ends or forgets it, and that no object of Node owns. */
export function noteDescriptor(fd: number): void {
  noteRange(BigInt(fd), DESCRIPTOR)
}

/** This thread is about to close a descriptor that it has noted. */
export function forgetDescriptor(fd: number): void {
  if (ownRow < 0) return
  for (let row = 0; row < RANGES_MAX; row++) {
    if (rangeOwners[row] !== threadId || rangeLengths[row] !== DESCRIPTOR || rangeAddresses[row] !== fd)
      continue
    rangeAddresses[row] = 0
    rangeLengths[row] = 0
    atomics.store(rangeOwners, row, 0)
    return
  }
}

/** Notes a range that this thread keeps until it ends. */
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
    if (rangeOwners[row] === id) release(row)
  }
})

function release(row: number): void {
  const address = BigInt(rangeAddresses[row] as number)
  const length = rangeLengths[row] as number
  // Frees the row before it unmaps: this thread may be terminated in between. Its starter would then unmap the range a
  // second time, when the addresses may belong to another mapping.
  rangeAddresses[row] = 0
  atomics.store(rangeOwners, row, 0)
  if (length === DESCRIPTOR) loadLibc().libc?.close(Number(address))
  else if (address !== 0n) loadLibc().libc?.munmap(address, length)
}
