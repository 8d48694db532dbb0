/**
 * A sum over all threads of a process. Each thread publishes its part in whole steps, so that `add` seldom touches
 * shared memory. When a worker has ended, the thread that started it subtracts the worker's part (thread-table.ts).
 */

import { isMainThread } from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import { COUNT_ROWS, TOTAL_ROW } from './thread-layout.ts'
import { countColumn, ownRow } from './thread-table.ts'

/** False in a worker without a row: no other thread would subtract its part, so it counts for itself only. */
const isShared = isMainThread || ownRow >= 0

export class ProcessCount {
  readonly #rows: Int32Array
  readonly #step: number
  #own = 0
  /** Whole steps of `#own` that this thread has published. */
  #published = 0

  /** `column` of the table (thread-layout.ts). The part of each other thread is known to within one `step`. */
  constructor(column: number, step: number) {
    this.#rows = isShared ? countColumn(column) : new Int32Array(COUNT_ROWS)
    this.#step = step
  }

  add(amount: number): void {
    this.#own += amount
    const ahead = this.#own - this.#published * this.#step
    if (ahead >= this.#step || ahead <= -this.#step) this.#publish(Math.trunc(ahead / this.#step))
  }

  get total(): number {
    return (atomics.load(this.#rows, TOTAL_ROW) - this.#published) * this.#step + this.#own
  }

  #publish(steps: number): void {
    this.#published += steps
    if (ownRow >= 0) atomics.add(this.#rows, ownRow, steps)
    atomics.add(this.#rows, TOTAL_ROW, steps)
  }
}
