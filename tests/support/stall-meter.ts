/**
 * How long the event loop of this thread stood still at most. Another process that has the core makes a turn longer, and does
 * not make it use more of the processor; other threads of this process use more of it, and do not make the turn longer. So a
 * gap between two ticks counts for as much as both say: the clock, and what the process has used meanwhile. What the garbage
 * collector does in this thread counts: it is of what was allocated here.
 */
const TICK_MS = 1

export class StallMeter {
  #longestMs = 0
  #wallMs = 0
  #usedMs = 0
  #timer: NodeJS.Timeout | undefined

  begin(): void {
    this.#longestMs = 0
    this.#wallMs = performance.now()
    this.#usedMs = usedMs()
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS)
  }

  /** Milliseconds of the longest turn since it began. */
  end(): number {
    this.#tick()
    clearInterval(this.#timer)
    this.#timer = undefined
    return this.#longestMs
  }

  #tick(): void {
    const nowMs = performance.now()
    const used = usedMs()
    const stallMs = Math.min(nowMs - this.#wallMs, used - this.#usedMs)
    this.#longestMs = Math.max(this.#longestMs, stallMs)
    this.#wallMs = nowMs
    this.#usedMs = used
  }
}

/** What this process has used of the processor so far. */
export function usedMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}
