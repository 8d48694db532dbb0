/** One operation that waits: a buffer that the socket has for as long, and a promise. */
export interface Operation {
  readonly bytes: Uint8Array
  /** How much of it is done. */
  done: number
  readonly resolve: (length: number) => void
  readonly reject: (error: Error) => void
}

/** The operations of one direction of a socket, in the order in which they were asked for. */
export class Operations {
  readonly #waiting: Operation[] = []

  get count(): number {
    return this.#waiting.length
  }

  get first(): Operation | undefined {
    return this.#waiting[0]
  }

  add(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ bytes, done: 0, resolve, reject })
    })
  }

  /** The first one is done. */
  finishFirst(): void {
    const operation = this.#waiting.shift()
    operation?.resolve(operation.done)
  }

  finishAll(): void {
    while (this.#waiting.length > 0) this.finishFirst()
  }

  failAll(error: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }
}
