type Callback = (reason: unknown) => void

/** One listener per signal serves all its waits: Node warns of a leak at more than ten listeners. */
const watches = new WeakMap<AbortSignal, AbortWatch>()

class AbortWatch {
  readonly #signal: AbortSignal
  readonly #callbacks = new Set<Callback>()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  add(callback: Callback): void {
    if (this.#callbacks.size === 0) this.#signal.addEventListener('abort', this.#abort, { once: true })
    this.#callbacks.add(callback)
  }

  remove(callback: Callback): void {
    this.#callbacks.delete(callback)
    if (this.#callbacks.size === 0) this.#signal.removeEventListener('abort', this.#abort)
  }

  readonly #abort = (): void => {
    for (const callback of this.#callbacks) callback(this.#signal.reason)
  }
}

/** Calls `callback` with the signal's reason when the signal is aborted. The returned function cancels this. */
export function watchAbort(signal: AbortSignal, callback: Callback): () => void {
  const watch = watches.get(signal) ?? new AbortWatch(signal)
  watches.set(signal, watch)
  watch.add(callback)
  return () => watch.remove(callback)
}
