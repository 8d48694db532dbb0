/**
 * A product of two matrices by four workers: each gets all of B, then blocks of rows of A, one after the other, as it
 * sends the products of the earlier ones back. A faster worker gets more blocks.
 */
export const WORKER_COUNT = 4
const BLOCK_ROWS = 4
/** Blocks that a worker has been given and has not sent back: it must not wait for the next. */
export const BLOCKS_AHEAD = 2

/** A message is the number of the block, and its rows. */
export function messageLength(n: number): number {
  return 1 + BLOCK_ROWS * n
}

export function bytesOf(numbers: Float64Array): Buffer {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength)
}

/** At the coordinator. */
export class Product {
  readonly b: Float64Array
  readonly #n: number
  readonly #a: Float64Array
  readonly #c: Float64Array
  #nextBlock = 0
  #doneCount = 0

  constructor(n: number) {
    this.#n = n
    this.#a = Float64Array.from({ length: n * n }, (_, i) => (i % 7) - 3)
    this.b = Float64Array.from({ length: n * n }, (_, i) => (i % 5) - 2)
    this.#c = new Float64Array(n * n)
  }

  /** False if there are no more. */
  takeTask(into: Float64Array): boolean {
    const block = this.#nextBlock
    if (block >= this.#blockCount) return false
    this.#nextBlock++
    into[0] = block
    const size = BLOCK_ROWS * this.#n
    into.set(this.#a.subarray(block * size, (block + 1) * size), 1)
    return true
  }

  /** True if that was the last one. */
  putResult(message: Float64Array): boolean {
    const [block = 0] = message
    this.#c.set(message.subarray(1), block * BLOCK_ROWS * this.#n)
    return ++this.#doneCount === this.#blockCount
  }

  /** Throws unless some elements are what they must be. */
  verify(): void {
    const n = this.#n
    for (const [row, column] of [
      [0, 0],
      [n - 1, n - 1],
      [n >> 1, 1],
    ] as const) {
      let sum = 0
      for (let k = 0; k < n; k++) sum += (this.#a[row * n + k] ?? 0) * (this.b[k * n + column] ?? 0)
      if (this.#c[row * n + column] !== sum)
        throw new Error(`element ${row}, ${column} of the product is wrong`)
    }
  }

  get #blockCount(): number {
    return this.#n / BLOCK_ROWS
  }
}

/** At a worker. */
export function multiply(task: Float64Array, b: Float64Array, n: number, result: Float64Array): void {
  result.fill(0)
  result[0] = task[0] as number
  for (let row = 0; row < BLOCK_ROWS; row++) {
    for (let k = 0; k < n; k++) {
      const factor = task[1 + row * n + k] as number
      const from = k * n
      const to = 1 + row * n
      for (let column = 0; column < n; column++) {
        result[to + column] = (result[to + column] as number) + factor * (b[from + column] as number)
      }
    }
  }
}

export function printFigure(n: number, startMs: number): void {
  const value = (performance.now() - startMs) / 1000
  console.log(JSON.stringify([{ part: `${n} x ${n}`, metric: 'time', unit: 's', value }]))
}
