/**
 * The table that the threads of one process share, by columns.
 *
 *   range    address (f64)    length (f64)    owner's thread id (i32), 0 in a free row; in place of a range also
 *            a descriptor, -1, or the inode of a socket's file in the rendezvous folder, -2
 *   worker   thread id (i32), 0 in a free row    parent's thread id (i32)    state (i32)
 *   count    each worker's part (i32), and the sum over all threads (i32) in the last row
 *
 * A worker claims rows and fills them in. When the worker has ended, the thread that started it frees the rows, and
 * only that thread writes them then. Both threads write the state (undisturbed.ts). An address has 47 bits: a double
 * is enough.
 */

/** Changes with the layout: a process may load copies of this package with different layouts. */
export const TABLE_KEY = 'fastsockets.threads.3'
/** Living workers. A worker that finds no row is treated as one whose starter has not loaded this package. */
export const WORKERS_MAX = 1024
/** Ranges of all living workers. A range that finds no row stays mapped after its worker has ended. */
export const RANGES_MAX = 8192

export const ADDRESSES_AT = 0
export const LENGTHS_AT = ADDRESSES_AT + 8 * RANGES_MAX
export const OWNERS_AT = LENGTHS_AT + 8 * RANGES_MAX
export const IDS_AT = OWNERS_AT + 4 * RANGES_MAX
export const PARENTS_AT = IDS_AT + 4 * WORKERS_MAX
export const STATES_AT = PARENTS_AT + 4 * WORKERS_MAX
export const COUNTS_AT = STATES_AT + 4 * WORKERS_MAX
/** Columns of counts, one for each `ProcessCount`. */
export const COUNT_KEPT = 0
export const COUNT_GRANTED = 1
export const COUNTS = 2
/** The row of the sum, behind the rows of the workers. */
export const TOTAL_ROW = WORKERS_MAX
export const COUNT_ROWS = WORKERS_MAX + 1
export const TABLE_SIZE = COUNTS_AT + 4 * COUNTS * COUNT_ROWS
