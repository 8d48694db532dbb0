/**
 * What the threads of a process know of each other: a table in memory that they share (thread-layout.ts), which new
 * workers get as environment data. A worker takes a row when it loads us; the thread that started it gives the row back
 * when the worker has ended. Workers whose starter has not loaded us have no row, and nobody looks after them.
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
  /** The thread that the next worker gets this from. */
  readonly parent: number
}

const inherited = getEnvironmentData(TABLE_KEY) as Inheritance | undefined
/** Without the class this thread knows of no other; whoever needs them looks for it (fast-way.ts). */
const canShare = typeof SharedArrayBuffer === 'function'
const table: ArrayBufferLike =
  inherited?.table ?? (canShare ? new SharedArrayBuffer(TABLE_SIZE) : new ArrayBuffer(TABLE_SIZE))
const ids = new Int32Array(table, IDS_AT, WORKERS_MAX)
const parents = new Int32Array(table, PARENTS_AT, WORKERS_MAX)
export const workerStates = new Int32Array(table, STATES_AT, WORKERS_MAX)
export const rangeOwners = new Int32Array(table, OWNERS_AT, RANGES_MAX)
export const rangeAddresses = new Float64Array(table, ADDRESSES_AT, RANGES_MAX)
export const rangeLengths = new Float64Array(table, LENGTHS_AT, RANGES_MAX)

/** Every worker's part of a number, and the total. */
export function countColumn(column: number): Int32Array {
  return new Int32Array(table, COUNTS_AT + 4 * column * COUNT_ROWS, COUNT_ROWS)
}

/** This thread's row, or -1: it is the main thread, or a worker that nobody looks after. */
export const ownRow = takeOwnRow()
if (canShare) setEnvironmentData(TABLE_KEY, { table, parent: threadId } satisfies Inheritance)

function takeOwnRow(): number {
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

/** Rows of a worker and of all workers that it started, and they: they end with it. */
export function familyRows(id: number): number[] {
  return livingRows().filter(row => ids[row] === id || isBelow(row, id))
}

/** Rows of all workers that end with this thread. */
export function descendantRows(): number[] {
  return livingRows().filter(row => isBelow(row, threadId))
}

/** Calls `handle` with the id of every worker that has ended: its thread is joined, and can touch nothing any more. */
export function onWorkerEnd(handle: (id: number) => void): void {
  process.on('worker', (worker: Worker) => {
    const { threadId: id } = worker
    worker.once('exit', () => {
      const rows = familyRows(id)
      for (const row of rows) handle(ids[row] as number)
      for (const row of rows) giveBack(row)
    })
  })
}

function giveBack(row: number): void {
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
