/**
 * The table in shared memory through which the threads of a process know of each other (thread-layout.ts). New
 * workers get it as environment data. A worker claims a row when it loads this package; the thread that started it
 * frees the row when the worker has ended. A worker whose starter has not loaded this package has no row, and no
 * thread cleans up after it.
 */

import {
  getEnvironmentData,
  isMainThread,
  setEnvironmentData,
  threadId,
  type Worker,
} from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import {
  ADDRESSES_AT,
  COUNT_ROWS,
  COUNTS,
  COUNTS_AT,
  IDS_AT,
  LENGTHS_AT,
  OWNERS_AT,
  PARENTS_AT,
  RANGES_MAX,
  STATES_AT,
  TABLE_KEY,
  TABLE_SIZE,
  TOTAL_ROW,
  WORKERS_MAX,
} from './thread-layout.ts'

interface Inheritance {
  readonly table: ArrayBufferLike
  /** Id of the thread that starts the worker. */
  readonly parent: number
}

const inherited = getEnvironmentData(TABLE_KEY) as Inheritance | undefined
/** False if the program has removed the global class: this thread then knows of no other. See fast-way.ts. */
const canShare = typeof SharedArrayBuffer === 'function'
const table: ArrayBufferLike =
  inherited?.table ?? (canShare ? new SharedArrayBuffer(TABLE_SIZE) : new ArrayBuffer(TABLE_SIZE))
const ids = new Int32Array(table, IDS_AT, WORKERS_MAX)
const parents = new Int32Array(table, PARENTS_AT, WORKERS_MAX)
export const workerStates = new Int32Array(table, STATES_AT, WORKERS_MAX)
export const rangeOwners = new Int32Array(table, OWNERS_AT, RANGES_MAX)
export const rangeAddresses = new Float64Array(table, ADDRESSES_AT, RANGES_MAX)
export const rangeLengths = new Float64Array(table, LENGTHS_AT, RANGES_MAX)

/** Every worker's part of a count, and the sum in `TOTAL_ROW`. */
export function countColumn(column: number): Int32Array {
  return new Int32Array(table, COUNTS_AT + 4 * column * COUNT_ROWS, COUNT_ROWS)
}

/** This thread's row. -1 in the main thread, and in a worker that no other thread cleans up after. */
export const ownRow = acquireOwnRow()
if (canShare) setEnvironmentData(TABLE_KEY, { table, parent: threadId } satisfies Inheritance)

function acquireOwnRow(): number {
  if (isMainThread || inherited === undefined) return -1
  // A second copy of this package in the same thread shares the row.
  if (inherited.parent === threadId) return ids.indexOf(threadId)
  for (let row = 0; row < WORKERS_MAX; row++) {
    if (atomics.compareExchange(ids, row, 0, threadId) !== 0) continue
    parents[row] = inherited.parent
    return row
  }
  return -1
}

/** Rows of worker `id` and of all its descendants, which end with it. */
export function familyRows(id: number): number[] {
  return livingRows().filter(row => ids[row] === id || isBelow(row, id))
}

/** Rows of all descendants of this thread, which end with it. */
export function descendantRows(): number[] {
  return livingRows().filter(row => isBelow(row, threadId))
}

/** Ids of all workers that end with this thread. */
export function descendants(): number[] {
  return descendantRows().map(row => ids[row] as number)
}

/** Calls `handle` with the id of every worker that has ended. Its thread is joined: it touches no memory any more. */
export function onWorkerEnd(handle: (id: number) => void): void {
  process.on('worker', (worker: Worker) => {
    const { threadId: id } = worker
    worker.once('exit', () => {
      const rows = familyRows(id)
      for (const row of rows) handle(ids[row] as number)
      for (const row of rows) release(row)
    })
  })
}

function release(row: number): void {
  parents[row] = 0
  for (let column = 0; column < COUNTS; column++) {
    const rows = countColumn(column)
    atomics.sub(rows, TOTAL_ROW, atomics.exchange(rows, row, 0))
  }
  atomics.store(workerStates, row, 0)
  atomics.store(ids, row, 0)
}

function livingRows(): number[] {
  return Array.from(ids.keys()).filter(row => ids[row] !== 0)
}

function isBelow(row: number, id: number): boolean {
  for (let at = row; at >= 0; at = ids.indexOf(parents[at] as number)) {
    if (parents[at] === id) return true
    if (parents[at] === 0) return false
  }
  return false
}
