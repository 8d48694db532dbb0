const SIZE_MIN = 16 * 1024

/**
 * The contiguous receive buffer of one socket (Fast Sockets 1997, section 3.3). It holds what came while nobody was
 * reading; there is no memory behind it otherwise.
 */
export class ReceiveBuffer {
  #bytes: Buffer | undefined
  #length = 0
  readonly #sizeMax: number

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax
  }

  get length(): number {
    return this.#length
  }

  append(source: Uint8Array, offset: number, length: number): void {
    const bytes = this.#room(this.#length + length)
    bytes.set(source.subarray(offset, offset + length), this.#length)
    this.#length += length
  }

  /** Everything at once, with its memory: the buffer starts afresh. */
  take(): Buffer {
    const bytes = (this.#bytes as Buffer).subarray(0, this.#length)
    this.clear()
    return bytes
  }

  clear(): void {
    this.#bytes = undefined
    this.#length = 0
  }

  #room(needed: number): Buffer {
    const old = this.#bytes
    if (old !== undefined && old.length >= needed) return old
    let size = old?.length ?? SIZE_MIN
    while (size < needed) size *= 2
    const bytes = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(size, this.#sizeMax)))
    if (old !== undefined) bytes.set(old.subarray(0, this.#length))
    this.#bytes = bytes
    return bytes
  }
}
