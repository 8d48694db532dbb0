/** A gap this long between two readings means that this process did not run. The store reads ten times a second. */
const STALL_MS = 1000

/**
 * The time by which leases run: monotonic, and only while this process runs. Setting the host's clock has no effect, and
 * the time in which a daemon was stopped, swapped out or busy does not count against its clients.
 */
export class LeaseClock {
  readonly #monotonicMs: () => number
  #readMs: number
  #stalledMs = 0

  constructor(monotonicMs = () => performance.now()) {
    this.#monotonicMs = monotonicMs
    this.#readMs = monotonicMs()
  }

  nowMs(): number {
    const nowMs = this.#monotonicMs()
    const gapMs = nowMs - this.#readMs
    if (gapMs > STALL_MS) this.#stalledMs += gapMs
    this.#readMs = nowMs
    return nowMs - this.#stalledMs
  }
}
