/** Circular queue of slots that this side gives back itself, each with its reason (0: a get that is complete). */
export class KeptSlots {
  readonly #slots: Uint16Array
  readonly #reasons: Uint8Array
  #first = 0
  count = 0

  constructor(size: number) {
    this.#slots = new Uint16Array(size)
    this.#reasons = new Uint8Array(size)
  }

  push(slot: number, reason: number): void {
    const last = (this.#first + this.count) % this.#slots.length
    this.#slots[last] = slot
    this.#reasons[last] = reason
    this.count++
  }

  get firstSlot(): number {
    return this.#slots[this.#first] as number
  }

  get firstReason(): number {
    return this.#reasons[this.#first] as number
  }

  shift(): void {
    this.#first = (this.#first + 1) % this.#slots.length
    this.count--
  }
}
