import { randomInt } from 'node:crypto'
import { FaultRandom } from '../../nic/fault/fault-random.ts'

/** Numbers that come again when the test is run again with the same seed. */
export class Random extends FaultRandom {
  readonly seed: number

  constructor(seed: number) {
    super(seed)
    this.seed = seed
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

/** A source of random numbers whose seed is printed with the test; SEED or FASTSOCKETS_TEST_SEED set it. */
export function seededRandom(t: { comment(...text: unknown[]): void }): Random {
  const fixed = process.env.SEED ?? process.env.FASTSOCKETS_TEST_SEED
  const seed = fixed === undefined ? randomInt(2 ** 32) : Number(fixed)
  t.comment(`seed: run again with SEED=${seed}`)
  return new Random(seed)
}
