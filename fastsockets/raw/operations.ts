import { hasBytes } from '../../nic/index.ts'
import { systemError } from '../host/socket-errors.ts'

/** One operation that waits: a promise, and a buffer that belongs to the socket until the promise settles. */
export interface Operation {
  readonly bytes: Uint8Array
  /** The buffer's length when the program passed it. */
  readonly length: number
  /** Bytes done so far. */
  done: number
  readonly resolve: (length: number) => void
  readonly reject: (error: Error) => void
}

/** The operations of one direction of a socket, in the order of the calls. */
export class Operations {
  readonly waiting: Operation[] = []

  /**
   * The first receive that still has its buffer. The program may have transferred or shrunk a buffer: such a receive
   * ends.
   */
  get firstFillable(): Operation | undefined {
    for (let first = this.waiting[0]; first !== undefined; first = this.waiting[0]) {
      if (hasBytes(first.bytes, first.length)) return first
      if (first.done > 0) this.finishFirst()
      else this.waiting.shift()?.reject(systemError('EFAULT', 'read'))
    }
    return undefined
  }

  add(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ bytes, length: bytes.length, done: 0, resolve, reject })
    })
  }

  /** Resolves the first operation. */
  finishFirst(): void {
    const operation = this.waiting.shift()
    operation?.resolve(operation.done)
  }

  finishAll(): void {
    while (this.waiting.length > 0) this.finishFirst()
  }

  failAll(error: Error): void {
    for (const { reject } of this.waiting.splice(0)) reject(error)
  }
}
