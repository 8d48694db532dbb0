import { randomInt } from 'node:crypto'

/** Numbers that come again when the test is run again with the same FASTSOCKETS_TEST_SEED (mulberry32). */
export class Random {
  readonly seed: number
  #state: number

  constructor(seed: number) {
    this.seed = seed
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
    return min + Math.floor((this.word() / 2 ** 32) * (max - min + 1))
  }

  chance(share: number): boolean {
    return this.word() < share * 2 ** 32
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.within(0, choices.length - 1)] as T
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length)
    for (let i = 0; i < length; i++) bytes[i] = this.word()
    return bytes
  }
}

/** A source of random numbers whose seed is printed with the test. */
export function seededRandom(t: { comment(...text: unknown[]): void }): Random {
  const fixed = process.env.FASTSOCKETS_TEST_SEED
  const seed = fixed === undefined ? randomInt(2 ** 32) : Number(fixed)
  t.comment(`seed: run again with FASTSOCKETS_TEST_SEED=${seed}`)
  return new Random(seed)
}
