const FREE = 0
/** In use by a request under way: the peer gives it back. */
const OUT = 1
/** Kept on this side: only this side gives it back. */
const KEPT = 2

/** The sender's half of the credits: free slots, given out in the order in which they came back. */
export class CreditSlots {
  readonly size: number
  freeCount: number
  private readonly free: Uint16Array
  private readonly states: Uint8Array
  private first = 0
  /** The slot that `acquire` gives; -1 if there is none. */
  next = 0

  constructor(size: number) {
    this.size = size
    this.freeCount = size
    this.free = Uint16Array.from({ length: size }, (_, slot) => slot)
    this.states = new Uint8Array(size)
  }

  /** Acquires the slot that `next` named. */
  acquire(): void {
    this.states[this.next] = OUT
    this.first = this.first + 1 === this.size ? 0 : this.first + 1
    this.freeCount--
    this.next = this.freeCount === 0 ? -1 : (this.free[this.first] as number)
  }

  isOut(slot: number): boolean {
    return this.states[slot] === OUT
  }

  /** Only this side gives the slot back from now on. */
  keep(slot: number): void {
    this.states[slot] = KEPT
  }

  releaseKept(slot: number): void {
    this.states[slot] = OUT
    this.release(slot)
  }

  /** The peer releases a slot; false if the peer does not have it. */
  release(slot: number): boolean {
    if (this.states[slot] !== OUT) return false
    this.states[slot] = FREE
    let last = this.first + this.freeCount
    if (last >= this.size) last -= this.size
    this.free[last] = slot
    if (this.freeCount === 0) this.next = slot
    this.freeCount++
    return true
  }
}
