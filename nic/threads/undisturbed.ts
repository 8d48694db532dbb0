/**
 * `worker.terminate()` and the end of the process stop a worker between any two instructions. Two kinds of steps must
 * not be interrupted. While koffi loads, binds a function or makes a view, it throws if the thread is being stopped,
 * and throwing in such a thread aborts the process. Between two system calls a descriptor may have no owner yet, so
 * that it would leak. Such steps run `undisturbed`: the thread that stops the worker waits until they are over, for
 * microseconds, or for some milliseconds while koffi loads. Plain calls through koffi need no such care.
 *
 *   IDLE  --enter-->  BUSY  --leave-->  IDLE        by the worker
 *   IDLE  --stop-->   DOOMED                        by the thread that stops it: the worker cannot enter any more
 */

import { isMainThread, Worker } from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import { performance } from '../performance.ts'
import { coverClosedOutput } from '../posix/closed-output.ts'
import { descendantRows, familyRows, ownRow, workerStates } from './thread-table.ts'

const IDLE = 0
const BUSY = 1
const DOOMED = 2
/** Longest wait of a thread for its busy workers: one that was stopped by other means while busy stays busy for ever. */
const GRACE_MS = 5000
/**
 * Longest wait of a doomed worker for its end. Node ends the workers of a process one after the other, and on a busy
 * machine each may take a hundred milliseconds. Limited, as a program may emit 'exit' itself and go on.
 */
const DOOM_MS = 60_000

let depth = 0

/** Runs `action`, which must not wait; this thread is not stopped before it has returned. */
export function undisturbed<T>(action: () => T): T {
  if (depth++ === 0) enter()
  try {
    return action()
  } finally {
    if (--depth === 0) leave()
  }
}

function enter(): void {
  if (ownRow < 0 || atomics.compareExchange(workerStates, ownRow, IDLE, BUSY) !== DOOMED) return
  // The worker is stopped during this wait.
  atomics.wait(workerStates, ownRow, DOOMED, DOOM_MS)
}

function leave(): void {
  if (ownRow < 0 || atomics.compareExchange(workerStates, ownRow, BUSY, IDLE) !== BUSY) return
  atomics.notify(workerStates, ownRow)
}

/** Returns when all these workers are doomed. A worker that stays busy for `GRACE_MS` is left as it is. */
function doom(rows: readonly number[]): void {
  const deadlineMs = performance.now() + GRACE_MS
  for (const row of rows) {
    while (atomics.compareExchange(workerStates, row, IDLE, DOOMED) === BUSY) {
      const leftMs = deadlineMs - performance.now()
      if (leftMs <= 0 || atomics.wait(workerStates, row, BUSY, leftMs) === 'timed-out') break
    }
  }
}

const { terminate } = Worker.prototype
Object.defineProperty(Worker.prototype, 'terminate', {
  ...Object.getOwnPropertyDescriptor(Worker.prototype, 'terminate'),
  value: function (this: Worker, ...args: []): Promise<number> {
    doom(familyRows(this.threadId))
    return terminate.apply(this, args)
  },
})
Object.defineProperty(Worker.prototype.terminate, 'name', { value: 'terminate' })
process.on('exit', () => {
  doom(descendantRows())
  if (isMainThread) coverClosedOutput()
})
