const RANGE = 2 ** 32

/** Random numbers that repeat for the same seed (mulberry32, Tommy Ettinger, 2017). Not for secrets. */
export class FaultRandom {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** A whole number within 0 … 2^32 - 1. */
  word(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return (mixed ^ (mixed >>> 14)) >>> 0
  }

  /** A whole number from `min` to `max`, both included. */
  within(min: number, max: number): number {
    return min + Math.floor((this.word() / RANGE) * (max - min + 1))
  }

  chance(share: number): boolean {
    return this.word() < share * RANGE
  }
}
