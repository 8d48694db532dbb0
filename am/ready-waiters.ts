import { closedError } from './errors.ts'

interface Waiter {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** Callers that wait until a retry may succeed. */
export class ReadyWaiters {
  readonly #waiters = new Set<Waiter>()

  get count(): number {
    return this.#waiters.size
  }

  wait(): { promise: Promise<void>; forget: () => void } {
    let waiter: Waiter | undefined
    const promise = new Promise<void>((resolve, reject) => {
      waiter = { resolve, reject }
      this.#waiters.add(waiter)
    })
    return { promise, forget: () => void this.#waiters.delete(waiter as Waiter) }
  }

  /** Wakes the first `limit` waiters. */
  wake(limit = this.#waiters.size): void {
    if (this.#waiters.size === 0) return
    let left = limit
    for (const waiter of this.#waiters) {
      if (left-- <= 0) return
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }

  /** Rejects all waiters: the endpoint is closed. */
  refuse(): void {
    for (const { reject } of this.#waiters) reject(closedError())
    this.#waiters.clear()
  }
}
