import { closedError } from './errors.ts'

interface Waiter {
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** Callers that wait until a retry may succeed. */
export class ReadyWaiters {
  readonly waiting = new Set<Waiter>()

  wait(): { promise: Promise<void>; forget: () => void } {
    let waiter: Waiter | undefined
    const promise = new Promise<void>((resolve, reject) => {
      waiter = { resolve, reject }
      this.waiting.add(waiter)
    })
    return { promise, forget: () => void this.waiting.delete(waiter as Waiter) }
  }

  /** Wakes the first `limit` waiters. */
  wake(limit = this.waiting.size): void {
    if (this.waiting.size === 0) return
    let left = limit
    for (const waiter of this.waiting) {
      if (left-- <= 0) return
      this.waiting.delete(waiter)
      waiter.resolve()
    }
  }

  /** Rejects all waiters: the endpoint is closed. */
  refuse(): void {
    for (const { reject } of this.waiting) reject(closedError())
    this.waiting.clear()
  }
}
