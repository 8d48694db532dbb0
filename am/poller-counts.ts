/** Counts of one poller since its creation. */
export interface PollerStats {
  turns: number
  messages: number
  /** Turns without a message. */
  emptyTurns: number
  sleeps: number
  doorbells: number
}

export const POLLER_COUNTS = ['turns', 'messages', 'emptyTurns', 'sleeps', 'doorbells'] as const

const TURNS = 0
const MESSAGES = 1
const EMPTY_TURNS = 2
const SLEEPS = 3
const DOORBELLS = 4

/** The counts, in memory that its owner may share with readers outside the thread. */
export class PollerCounts {
  #counts: Float64Array = new Float64Array(POLLER_COUNTS.length)

  /** Keeps the counts in `memory` from now on, in the order of `POLLER_COUNTS`. */
  moveTo(memory: Float64Array): void {
    memory.set(this.#counts)
    this.#counts = memory
  }

  snapshot(): PollerStats {
    const [turns = 0, messages = 0, emptyTurns = 0, sleeps = 0, doorbells = 0] = this.#counts
    return { turns, messages, emptyTurns, sleeps, doorbells }
  }

  addTurn(): void {
    this.#counts[TURNS] = (this.#counts[TURNS] as number) + 1
  }

  addMessages(count: number): void {
    this.#counts[MESSAGES] = (this.#counts[MESSAGES] as number) + count
  }

  addEmptyTurn(): void {
    this.#counts[EMPTY_TURNS] = (this.#counts[EMPTY_TURNS] as number) + 1
  }

  addSleep(): void {
    this.#counts[SLEEPS] = (this.#counts[SLEEPS] as number) + 1
  }

  addDoorbell(): void {
    this.#counts[DOORBELLS] = (this.#counts[DOORBELLS] as number) + 1
  }
}
