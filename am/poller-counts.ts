/** What a poller has done so far. */
export interface PollerStats {
  turns: number
  messages: number
  /** Turns in which nothing was found. */
  emptyTurns: number
  sleeps: number
  doorbells: number
}

export const POLLER_COUNTS = ['turns', 'messages', 'emptyTurns', 'sleeps', 'doorbells'] as const

/** The counts, in memory that may be anybody's: whoever shows them to others without our help gives it. */
export class PollerCounts implements PollerStats {
  #counts: Float64Array = new Float64Array(POLLER_COUNTS.length)

  /** From now on the counts are kept in `memory`, in the order of `POLLER_COUNTS`. */
  moveTo(memory: Float64Array): void {
    memory.set(this.#counts)
    this.#counts = memory
  }

  get turns(): number {
    return this.#counts[0] as number
  }

  set turns(count: number) {
    this.#counts[0] = count
  }

  get messages(): number {
    return this.#counts[1] as number
  }

  set messages(count: number) {
    this.#counts[1] = count
  }

  get emptyTurns(): number {
    return this.#counts[2] as number
  }

  set emptyTurns(count: number) {
    this.#counts[2] = count
  }

  get sleeps(): number {
    return this.#counts[3] as number
  }

  set sleeps(count: number) {
    this.#counts[3] = count
  }

  get doorbells(): number {
    return this.#counts[4] as number
  }

  set doorbells(count: number) {
    this.#counts[4] = count
  }
}
