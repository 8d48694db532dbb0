/** Connections of a run, counted by wire and fallback reason. */
import type { Transport } from '../../handle/transport.ts'
import type { FallbackReason } from '../../reasons.ts'

export interface WireCount {
  readonly wire: string
  readonly reason?: FallbackReason
  readonly count: number
}

export class WireCounts {
  readonly #counts = new Map<string, WireCount>()

  add({ transport: wire, reason }: Pick<Transport, 'transport' | 'reason'>): void {
    const key = `${wire} ${reason?.code}`
    const count = (this.#counts.get(key)?.count ?? 0) + 1
    this.#counts.set(key, { wire, count, ...(reason && { reason }) })
  }

  /** The most common first. */
  get all(): readonly WireCount[] {
    return [...this.#counts.values()].toSorted((a, b) => b.count - a.count)
  }
}
