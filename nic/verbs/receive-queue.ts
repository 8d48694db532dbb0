import type { NicError } from '../errors.ts'
import type { FrameSink } from '../nic.ts'
import {
  align8,
  CELL_RELEASED_WORD,
  CELL_RENEWED_WORD,
  FRAME_HEADER_SIZE,
  frameMaxOf,
} from './frame-layout.ts'
import type { ReceiveSupply } from './receive-supply.ts'
import type { Slab } from './slab.ts'

/**
 * The receiving half: a ring that the peer writes to, and receives that announce each frame. Frame lengths come with
 * the completions and are kept where the peer cannot write: nothing in the ring decides where a frame ends.
 */
export class ReceiveQueue {
  bytes: Uint8Array
  words: Int32Array
  /** Receives used so far. */
  arrived = 0
  /** Bytes of the ring that were released, and receives that were posted again, so far. */
  released = 0
  renewed = 0
  /** The errno of a failed post of receives, or 0. The peer counts on them, so the connection must break. */
  errno = 0
  /** As last reported to the peer. */
  reportedReleased = 0
  reportedRenewed = 0
  readonly #supply: ReceiveSupply
  readonly #size: number
  readonly #mask: number
  readonly #frameMax: number
  readonly #receives: number
  /** Lengths of unhandled frames; at most as many as receives. */
  readonly #lengths: Int32Array
  #first = 0
  #count = 0
  /** The end of the last frame that arrived. */
  #tail = 0
  /** The end of the last handled frame. */
  #polled = 0
  #isPolling = false
  #isOpen = true

  constructor(supply: ReceiveSupply, slab: Slab) {
    this.#supply = supply
    this.bytes = slab.receiveBytes
    this.words = slab.receiveWords
    this.#size = slab.ringSize
    this.#mask = slab.ringSize - 1
    this.#frameMax = frameMaxOf(slab.ringSize)
    this.#receives = supply.count
    this.#lengths = new Int32Array(this.#receives)
  }

  /** Receives of this connection, as its peer knows them. */
  get count(): number {
    return this.#receives
  }

  /** Receives that were used and are not posted again. */
  get unspent(): number {
    return (this.arrived - this.renewed) | 0
  }

  postError(): NicError {
    return this.#supply.postError(this.errno)
  }

  get waiting(): number {
    return this.#count
  }

  get isPolling(): boolean {
    return this.#isPolling
  }

  /** Offset of an arrived frame whose header is to be read; -1 if no frame of that length is possible. */
  accept(length: number): number {
    this.arrived = (this.arrived + 1) | 0
    if (!this.#isOpen) return -1
    const need = FRAME_HEADER_SIZE + align8(length)
    const contiguous = this.#size - (this.#tail & this.#mask)
    const at = contiguous < need ? (this.#tail + contiguous) | 0 : this.#tail
    const end = (at + need) | 0
    if (length > this.#frameMax || ((end - this.released) | 0) > this.#size) return -1
    if (this.#count === this.#receives) return -1
    this.#lengths[(this.#first + this.#count) & (this.#receives - 1)] = length
    this.#count++
    this.#tail = end
    return at & this.#mask
  }

  releasedBy(at: number): number {
    return this.words[(at >> 2) + CELL_RELEASED_WORD] as number
  }

  renewedBy(at: number): number {
    return this.words[(at >> 2) + CELL_RENEWED_WORD] as number
  }

  /** A receive failed without a frame. */
  acceptFailure(): void {
    this.arrived = (this.arrived + 1) | 0
  }

  /** A receive brought another word than FRAME. */
  acceptControl(): void {
    this.arrived = (this.arrived + 1) | 0
    this.#spend()
  }

  /** Up to `limit` frames to `sink`; returns how many. */
  poll(sink: FrameSink, limit: number): number {
    if (this.#count === 0) return 0
    if (this.#isPolling) throw new Error('poll was called from within a frame handler')
    this.#isPolling = true
    let count = 0
    try {
      while (this.#isOpen && this.#count > 0 && count < limit) {
        const length = this.#lengths[this.#first] as number
        const need = FRAME_HEADER_SIZE + align8(length)
        const contiguous = this.#size - (this.#polled & this.#mask)
        const at = contiguous < need ? (this.#polled + contiguous) | 0 : this.#polled
        // Counted before the handler runs: if it throws, the frame is gone all the same.
        this.#first = (this.#first + 1) & (this.#receives - 1)
        this.#count--
        this.#polled = (at + need) | 0
        this.#spend()
        count++
        sink.handleFrame(this.bytes, (at & this.#mask) + FRAME_HEADER_SIZE, length)
        this.released = this.#polled
      }
    } finally {
      this.released = this.#polled
      this.#isPolling = false
    }
    return count
  }

  /** True if so much is free, and not reported, that the peer may be waiting for it. */
  get isReportDue(): boolean {
    return (
      ((this.released - this.reportedReleased) | 0) >= this.#size / 4 ||
      ((this.renewed - this.reportedRenewed) | 0) >= this.#receives / 2
    )
  }

  noteReported(): void {
    this.reportedReleased = this.released
    this.reportedRenewed = this.renewed
  }

  /** True if a peer that knows all credit could send a frame that takes `total` bytes. */
  hasRoom(total: number): boolean {
    return this.#size - ((this.#tail - this.released) | 0) >= total && this.#count <= this.#receives / 4
  }

  /** Arrived frames are no longer delivered. */
  forget(): void {
    this.#isOpen = false
    this.#count = 0
  }

  close(): void {
    this.forget()
    this.bytes = new Uint8Array(0)
    this.words = new Int32Array(0)
  }

  #spend(): void {
    const renewed = this.#supply.renew()
    if (renewed < 0) this.errno ||= -renewed
    else if (this.errno === 0) this.renewed = (this.renewed + renewed) | 0
  }
}
