import { atomics } from '../atomics.ts'
import { BROKEN, CLOSED, NO_RESOURCE } from '../status.ts'
import type { EndAddress } from './address-layout.ts'
import {
  align8,
  CELL_RELEASED_WORD,
  CELL_RENEWED_WORD,
  CELL_SIZE,
  FRAME_HEADER_SIZE,
  frameMaxOf,
  KIND_FRAME,
  KIND_SHIFT,
  PAGE_SIZE,
  READ_BACK_AT,
  RECEIVES_RESERVED,
  swapBytes,
} from './frame-layout.ts'
import { OPCODE_RDMA_READ, OPCODE_RDMA_WRITE, OPCODE_RDMA_WRITE_WITH_IMM } from './library-layout.ts'
import { NotedWork, NoticeSource } from './noted-work.ts'
import type { QueuePair } from './queue-pair.ts'
import { SendWork } from './send-work.ts'
import type { Slab } from './slab.ts'
import { SplitAddress } from './split-address.ts'
import type { VerbsAdapter } from './verbs-adapter.ts'
import { identityOf, WORK_BYE, WORK_SEND } from './work-identity.ts'

/** One-sided operations under way or not polled yet. */
export const ONE_SIDED_MAX = 64

const NOWHERE = new SplitAddress(0)

/** Places that frames leave for one-sided operations, and for words to the peer: with 16 receives there are few. */
const ONE_SIDED_RESERVED = 16
const CONTROL_RESERVED = 4
const FRAMES_LEAVE = ONE_SIDED_RESERVED + CONTROL_RESERVED

/**
 * Requests under way, for this end's number of receives. If the connection fails, all of them complete: the completion
 * queue has room for them.
 */
export function sendsOf(receives: number, isShared: boolean): number {
  return receives + (isShared ? FRAMES_LEAVE : ONE_SIDED_MAX)
}

/**
 * The sending half: a ring like the peer's, and its flow control. A frame needs room in the ring, a receive of the peer
 * and a place in the queue pair. A place is free again when a later signaled request has completed; ring memory when
 * the peer reports it as handled, which implies its acknowledgement.
 */
export class SendQueue {
  bytes: Uint8Array
  words: Int32Array
  /** The peer's violation, or another cause that broke the connection. */
  violation: string | undefined
  /** Frames and words sent so far; each uses a receive of the peer. */
  sent = 0
  releasedSeen = 0
  renewedSeen = 0
  readonly #qp: QueuePair
  readonly #slab: Slab
  readonly #frameWork: SendWork
  readonly #controlWork: SendWork
  readonly #slot: number
  readonly #size: number
  readonly #mask: number
  readonly #frameMax: number
  readonly #sendMax: number
  readonly #signalEvery: number
  readonly #ownCell: SplitAddress
  readonly #ownRing: SplitAddress
  readonly #lkey: number
  /** Address and key of the peer's slab, once it is connected. */
  #peerCell = NOWHERE
  #peerRing = NOWHERE
  #rkey = 0
  /** Receives of the peer. */
  #receives = 0
  #tail = 0
  #reservedAt = 0
  #posted = 0
  #completed = 0
  #isOpen = false

  /** `receives`: those of this end. */
  constructor(
    adapter: VerbsAdapter,
    qp: QueuePair,
    slab: Slab,
    slot: number,
    receives: number,
    sendMax: number,
  ) {
    const { ringSize } = slab
    this.#qp = qp
    this.#slab = slab
    this.#ownCell = new SplitAddress(slab.ownCellAddress)
    this.#ownRing = new SplitAddress(slab.sendAddress)
    this.#lkey = slab.outgoing.lkey | 0
    this.#slot = slot
    this.bytes = slab.sendBytes
    this.words = slab.sendWords
    const { libc } = adapter.verbs
    const source = adapter.manager === undefined ? undefined : new NoticeSource(slab)
    const newWork = (): SendWork =>
      source === undefined ? new SendWork(libc, qp.inlineMax) : new NotedWork(libc, qp.inlineMax, source)
    this.#frameWork = newWork()
    this.#controlWork = newWork()
    this.#size = ringSize
    this.#mask = ringSize - 1
    this.#frameMax = frameMaxOf(ringSize)
    this.#sendMax = sendMax
    this.#signalEvery = receives / 4
  }

  connect(peer: EndAddress): void {
    this.#peerCell = new SplitAddress(peer.address)
    this.#peerRing = new SplitAddress(peer.address + PAGE_SIZE)
    this.#rkey = peer.rkey | 0
    this.#receives = peer.receives
    this.#isOpen = true
  }

  reserve(length: number): number {
    if (length > this.#frameMax)
      throw new RangeError(`a frame of ${length} bytes; the most is ${this.#frameMax}`)
    if (!this.#isOpen) return this.violation === undefined ? CLOSED : BROKEN
    const contiguous = this.#size - (this.#tail & this.#mask)
    const need = FRAME_HEADER_SIZE + align8(length)
    const skip = contiguous < need ? contiguous : 0
    if (!this.#fits(skip + need)) {
      if (!this.readCell()) return BROKEN
      if (!this.#fits(skip + need)) return NO_RESOURCE
    }
    this.#reservedAt = (this.#tail + skip) | 0
    return (this.#reservedAt & this.#mask) + FRAME_HEADER_SIZE
  }

  /** Sends the reserved frame, with the receiving half's credit in it. Returns 0, or an errno. */
  commit(length: number, released: number, renewed: number): number {
    const size = FRAME_HEADER_SIZE + length
    if (this.#reservedAt !== this.#tail) this.#undoSkip(size)
    const at = this.#reservedAt & this.#mask
    this.words[(at >> 2) + CELL_RELEASED_WORD] = released
    this.words[(at >> 2) + CELL_RENEWED_WORD] = renewed
    this.#tail = (this.#reservedAt + align8(size)) | 0
    this.#frameWork.setTransfer(OPCODE_RDMA_WRITE_WITH_IMM, size, this.#lkey, this.#rkey)
    this.#frameWork.setPlaces(this.#ownRing, this.#peerRing, at)
    this.#frameWork.setImmediateData(swapBytes((KIND_FRAME << KIND_SHIFT) | length))
    this.sent = (this.sent + 1) | 0
    return this.post(this.#frameWork, WORK_SEND, false, true)
  }

  hasRoom(length: number): boolean {
    if (!this.#isOpen) return false
    const contiguous = this.#size - (this.#tail & this.#mask)
    const need = FRAME_HEADER_SIZE + align8(length)
    const total = contiguous < need ? contiguous + need : need
    return this.#fits(total) || (this.readCell() && this.#fits(total))
  }

  /** Bytes of the ring for a frame of `length` bytes, including the skip before it. */
  bytesFor(length: number): number {
    const contiguous = this.#size - (this.#tail & this.#mask)
    const need = FRAME_HEADER_SIZE + align8(length)
    return contiguous < need ? contiguous + need : need
  }

  /** Writes the cell into the peer's memory, without a word. Undefined if that is not possible now. */
  writeCell(released: number, renewed: number): number | undefined {
    if (!this.#hasPlace(FRAMES_LEAVE)) return undefined
    this.#fillCell(OPCODE_RDMA_WRITE, released, renewed)
    return this.post(this.#controlWork, WORK_SEND, false, true)
  }

  /** Writes the cell and a word. Undefined if that is not possible now. */
  writeControl(
    kind: number,
    value: number,
    released: number,
    renewed: number,
    work = WORK_SEND,
  ): number | undefined {
    if (!this.#hasPlace(0) || ((this.sent - this.renewedSeen) | 0) >= this.#receives) return undefined
    this.#fillCell(OPCODE_RDMA_WRITE_WITH_IMM, released, renewed)
    this.#controlWork.setImmediateData(swapBytes((kind << KIND_SHIFT) | value))
    this.sent = (this.sent + 1) | 0
    return this.post(this.#controlWork, work, work !== WORK_SEND, true)
  }

  /** Posts `work`. Its completion, if signaled, frees the places of all earlier work. */
  post(work: SendWork, kind: number, isSignaled: boolean, mayInline: boolean): number {
    this.#posted = (this.#posted + 1) | 0
    work.setIdentity(this.#posted, identityOf(kind, this.#slot))
    work.setFlags(isSignaled || (this.#posted & (this.#signalEvery - 1)) === 0, mayInline)
    return this.#qp.post(work)
  }

  /**
   * Reads the peer's cell: the answer proves that all earlier writes have arrived. For a device whose sends complete
   * before they arrive. False if not possible now.
   */
  readBack(): boolean {
    if (!this.hasPlace) return false
    const sink = new SplitAddress(this.#slab.address + READ_BACK_AT)
    this.#controlWork.setTransfer(OPCODE_RDMA_READ, CELL_SIZE, this.#slab.incoming.lkey | 0, this.#rkey)
    this.#controlWork.setPlaces(sink, this.#peerCell, 0)
    return this.post(this.#controlWork, WORK_BYE, true, false) === 0
  }

  handleSent(low: number): void {
    this.#completed = low
  }

  /** True if a one-sided operation has a place. */
  get hasPlace(): boolean {
    return this.#hasPlace(CONTROL_RESERVED)
  }

  /** Handles the peer's credit: false, and a violation, if it is impossible. */
  handleCredits(released: number, renewed: number): boolean {
    const freed = (released - this.releasedSeen) | 0
    const fresh = (renewed - this.renewedSeen) | 0
    if (freed > ((this.#tail - this.releasedSeen) | 0) || (freed & 7) !== 0) {
      this.violation = `${freed} bytes were released of ${(this.#tail - this.releasedSeen) | 0}`
    } else if (fresh > ((this.sent - this.renewedSeen) | 0)) {
      this.violation = `${fresh} receives were posted anew after ${(this.sent - this.renewedSeen) | 0}`
    }
    if (this.violation !== undefined) {
      this.#isOpen = false
      return false
    }
    // An older value may arrive later: the cell overtakes frames that were not polled yet.
    if (freed > 0) this.releasedSeen = released
    if (fresh > 0) this.renewedSeen = renewed
    return true
  }

  readCell(): boolean {
    const { cellWords } = this.#slab
    return this.handleCredits(
      atomics.load(cellWords, CELL_RELEASED_WORD),
      atomics.load(cellWords, CELL_RENEWED_WORD),
    )
  }

  /** The connection is broken: frames are refused. */
  fail(reason: string): void {
    this.violation ??= reason
    this.#isOpen = false
  }

  /** Frames are refused; posted ones still go out. */
  close(): void {
    this.#isOpen = false
    this.bytes = new Uint8Array(0)
    this.words = new Int32Array(0)
  }

  #fits(total: number): boolean {
    return (
      this.#size - ((this.#tail - this.releasedSeen) | 0) >= total &&
      ((this.sent - this.renewedSeen) | 0) < this.#receives - RECEIVES_RESERVED &&
      this.#hasPlace(FRAMES_LEAVE)
    )
  }

  /**
   * The reserved frame did not fit before the end of the ring, and the committed one may. The peer knows only its
   * length: if it fits, the peer expects it there.
   * that fits there after all, it looks for it there.
   */
  #undoSkip(size: number): void {
    const at = this.#tail & this.#mask
    if (this.#size - at < align8(size)) return
    const from = this.#reservedAt & this.#mask
    this.bytes.copyWithin(at + FRAME_HEADER_SIZE, from + FRAME_HEADER_SIZE, from + size)
    this.#reservedAt = this.#tail
  }

  /** True if there is a place, and `more`. */
  #hasPlace(more: number): boolean {
    return this.#isOpen && ((this.#posted - this.#completed) | 0) + more < this.#sendMax
  }

  #fillCell(opcode: number, released: number, renewed: number): void {
    const { ownCellWords } = this.#slab
    ownCellWords[CELL_RELEASED_WORD] = released
    ownCellWords[CELL_RENEWED_WORD] = renewed
    this.#controlWork.setTransfer(opcode, CELL_SIZE, this.#lkey, this.#rkey)
    this.#controlWork.setPlaces(this.#ownCell, this.#peerCell, 0)
  }
}
