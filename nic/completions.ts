import type { CompletionSink } from './nic.ts'
import type { Status } from './status.ts'

/** A completion queue for drivers that finish one-sided operations within the call. `push` needs `!isFull`. */
export class CompletionQueue {
  readonly #workIds: Float64Array
  readonly #statuses: Int8Array
  #first = 0
  #count = 0

  constructor(capacity: number) {
    this.#workIds = new Float64Array(capacity)
    this.#statuses = new Int8Array(capacity)
  }

  get isFull(): boolean {
    return this.#count === this.#workIds.length
  }

  push(workId: number, status: Status): void {
    const at = (this.#first + this.#count) % this.#workIds.length
    this.#workIds[at] = workId
    this.#statuses[at] = status
    this.#count++
  }

  poll(sink: CompletionSink, limit: number): number {
    let handled = 0
    while (this.#count > 0 && handled < limit) {
      const at = this.#first
      this.#first = (at + 1) % this.#workIds.length
      this.#count--
      handled++
      sink.handleCompletion(this.#workIds[at] as number, this.#statuses[at] as Status)
    }
    return handled
  }
}
