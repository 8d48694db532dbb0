import { CELL_SIZE, NOTICES_AT, PAGE_SIZE, RECEIVES_MAX, SENT_NOTICES } from './frame-layout.ts'
import { ACCESS_LOCAL_WRITE, ACCESS_REMOTE_READ, ACCESS_REMOTE_WRITE } from './library-layout.ts'
import type { MemoryRegion, VerbsDevice } from './verbs-device.ts'

/**
 * The registered memory of one end (frame-layout.ts): the part that the peer writes, and the part that is sent. Ordinary
 * memory of this process, which lives as long as a reference to it.
 */
export class Slab {
  readonly ringSize: number
  /** The part that the peer writes; the peer knows its address. */
  readonly incoming: MemoryRegion
  readonly address: number
  readonly cellWords: Int32Array
  /** Of iWARP devices. */
  readonly noticesAddress: number
  readonly notices: Int32Array
  readonly receiveBytes: Uint8Array
  readonly receiveWords: Int32Array
  /** The part that this end sends from. */
  readonly outgoing: MemoryRegion
  readonly ownCellAddress: number
  readonly ownCellWords: Int32Array
  readonly sentNoticesAddress: number
  readonly sentNotices: Int32Array
  readonly sendAddress: number
  readonly sendBytes: Uint8Array
  readonly sendWords: Int32Array
  readonly #adapter: VerbsDevice

  constructor(adapter: VerbsDevice, ringSize: number) {
    const half = PAGE_SIZE + ringSize
    const memory = new ArrayBuffer(2 * half)
    const base = adapter.verbs.libc.address(new Uint8Array(memory))
    this.#adapter = adapter
    this.ringSize = ringSize
    // An iWARP peer reads this cell back to know that everything has arrived.
    const reading = adapter.manager === undefined ? 0 : ACCESS_REMOTE_READ
    this.incoming = adapter.register(base, half, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | reading)
    try {
      this.outgoing = adapter.register(base + BigInt(half), half, 0)
    } catch (error) {
      adapter.deregister(this.incoming)
      throw error
    }
    adapter.slabBytes += 2 * half
    this.address = Number(base)
    this.cellWords = new Int32Array(memory, 0, CELL_SIZE / 4)
    this.noticesAddress = this.address + NOTICES_AT
    this.notices = new Int32Array(memory, NOTICES_AT, RECEIVES_MAX)
    this.receiveBytes = new Uint8Array(memory, PAGE_SIZE, ringSize)
    this.receiveWords = new Int32Array(memory, PAGE_SIZE, ringSize / 4)
    this.ownCellAddress = this.address + half
    this.ownCellWords = new Int32Array(memory, half, CELL_SIZE / 4)
    this.sentNoticesAddress = this.ownCellAddress + NOTICES_AT
    this.sentNotices = new Int32Array(memory, half + NOTICES_AT, SENT_NOTICES)
    this.sendAddress = this.ownCellAddress + PAGE_SIZE
    this.sendBytes = new Uint8Array(memory, half + PAGE_SIZE, ringSize)
    this.sendWords = new Int32Array(memory, half + PAGE_SIZE, ringSize / 4)
  }

  /** The queue pair must be destroyed: then no device writes here. */
  release(): void {
    this.#adapter.deregister(this.incoming)
    this.#adapter.deregister(this.outgoing)
    this.#adapter.slabBytes -= this.incoming.length + this.outgoing.length
  }
}
