/**
 * `worker.terminate()`, and the end of the process, stop a worker between any two instructions. Two things must not be
 * cut in half. koffi aborts the process if that happens while it loads, binds a function or makes a view: it throws, and
 * Node lets nobody throw in a thread that is being stopped. And between two system calls a descriptor may belong to
 * nobody. Such steps run `undisturbed`: whoever wants to stop the worker waits until they are over, which takes
 * microseconds, or some milliseconds while koffi loads. Plain calls through koffi need no such care.
 *
 *   IDLE  --enter-->  BUSY  --leave-->  IDLE        by the worker
 *   IDLE  --stop-->   DOOMED                        by the thread that stops it: the worker enters nothing any more
 */

import { isMainThread, Worker } from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import { coverClosedOutput } from '../posix/closed-output.ts'
import { performance } from '../real-time.ts'
import { descendantRows, familyRows, ownRow, workerStates } from './thread-table.ts'

const IDLE = 0
const BUSY = 1
const DOOMED = 2
/** Longest time that a thread waits for its workers: one may have been stopped by ways that we do not see. */
const GRACE_MS = 5000
/**
 * How long a worker waits for its end. Node ends the workers of a process one after the other, and on a busy machine a
 * hundred milliseconds may be needed for each; but somebody may only have played the end of the process, and go on.
 */
const DOOM_MS = 60_000

let depth = 0

/** Runs `action`, which waits for nothing, without being stopped in the middle of it. */
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
  // The end comes while we wait here.
  atomics.wait(workerStates, ownRow, DOOMED, DOOM_MS)
}

function leave(): void {
  if (ownRow < 0 || atomics.compareExchange(workerStates, ownRow, BUSY, IDLE) !== BUSY) return
  atomics.notify(workerStates, ownRow)
}

/** Returns when none of these workers is busy, and none will be; those that are busy for too long are left alone. */
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
