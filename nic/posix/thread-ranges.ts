/**
 * Address ranges of worker threads that are gone. `worker.terminate()` runs no code in the worker, so nobody there would
 * unmap what it had mapped. Every thread notes its ranges in a table that all threads of the process share (new workers
 * get it as environment data). When a worker has ended, however it ended, the thread that started it unmaps what is
 * noted of it: by then the worker's thread is joined and its memory can be touched by nobody.
 *
 *   row i of the table:  owner (i32)   root (i32)   address (f64)   length (f64)
 *
 * `owner` is the id of the thread, 0 in a free row; `root` is the worker above it whose parent is the main thread: a
 * worker that is terminated takes the workers that it has started with it. An address has 47 bits: a double is enough.
 */
import {
  getEnvironmentData,
  isMainThread,
  setEnvironmentData,
  threadId,
  type Worker,
} from 'node:worker_threads'
import { loadLibc } from './libc.ts'

const KEY = 'fastsockets.ranges'
/** Ranges of all living workers together; one that finds no row is lost if its worker is terminated. */
const RANGES_MAX = 8192
const OWNERS_AT = 0
const ROOTS_AT = OWNERS_AT + 4 * RANGES_MAX
const ADDRESSES_AT = ROOTS_AT + 4 * RANGES_MAX
const LENGTHS_AT = ADDRESSES_AT + 8 * RANGES_MAX
const TABLE_SIZE = LENGTHS_AT + 8 * RANGES_MAX

interface Inheritance {
  readonly table: SharedArrayBuffer
  readonly root: number
}

const inherited = getEnvironmentData(KEY) as Inheritance | undefined
const table = inherited?.table ?? new SharedArrayBuffer(TABLE_SIZE)
const root = isMainThread ? 0 : inherited?.root || threadId
const owners = new Int32Array(table, OWNERS_AT, RANGES_MAX)
const roots = new Int32Array(table, ROOTS_AT, RANGES_MAX)
const addresses = new Float64Array(table, ADDRESSES_AT, RANGES_MAX)
const lengths = new Float64Array(table, LENGTHS_AT, RANGES_MAX)

/** Whether another thread will unmap what this one leaves behind. The main thread leaves nothing: its process ends. */
export const hasHeir = isMainThread || inherited !== undefined

setEnvironmentData(KEY, { table, root } satisfies Inheritance)
process.on('worker', (worker: Worker) => {
  const { threadId: id } = worker
  worker.once('exit', () => unmapRangesOf(id))
})

/** Says that this thread has reserved a range, which it keeps until it ends. */
export function noteRange(address: bigint, length: number): void {
  if (isMainThread) return
  const row = claimRow()
  if (row < 0) return
  roots[row] = root
  lengths[row] = length
  // Last: a row without an address is not looked at.
  addresses[row] = Number(address)
}

function claimRow(): number {
  for (let row = 0; row < RANGES_MAX; row++) {
    if (Atomics.compareExchange(owners, row, 0, threadId) === 0) return row
  }
  return -1
}

function unmapRangesOf(id: number): void {
  for (let row = 0; row < RANGES_MAX; row++) {
    if (owners[row] === 0 || (owners[row] !== id && roots[row] !== id)) continue
    const address = BigInt(addresses[row] as number)
    const length = lengths[row] as number
    // The row first: this thread may be terminated, too, and what is unmapped twice may be somebody else's by then.
    addresses[row] = 0
    roots[row] = 0
    Atomics.store(owners, row, 0)
    if (address !== 0n) loadLibc().libc?.munmap(address, length)
  }
}
