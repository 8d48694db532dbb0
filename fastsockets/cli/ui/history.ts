import type { Totals } from './snapshot-types.ts'

/** Ten minutes, a second each. */
export const HISTORY_LENGTH = 600

/** The last totals, oldest first. */
export class History {
  readonly #all: Totals[] = []

  add(totals: Totals): void {
    if (this.#all.push(totals) > HISTORY_LENGTH) this.#all.shift()
  }

  get all(): readonly Totals[] {
    return this.#all
  }
}
