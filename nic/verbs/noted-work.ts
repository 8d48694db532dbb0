import type { Libc } from '../posix/libc.ts'
import { NOTICE_SIZE, SENT_NOTICES } from './frame-layout.ts'
import { OPCODE_RDMA_WRITE, OPCODE_RDMA_WRITE_WITH_IMM, OPCODE_SEND } from './library-layout.ts'
import { SendWork } from './send-work.ts'
import type { Slab } from './slab.ts'
import { SplitAddress } from './split-address.ts'

/** Memory of sent words, used in rotation, so that none is overwritten while it is under way. */
export class NoticeSource {
  readonly address: SplitAddress
  readonly lkey: number
  readonly #words: Int32Array
  #next = 0

  constructor(slab: Slab) {
    this.address = new SplitAddress(slab.sentNoticesAddress)
    this.lkey = slab.outgoing.lkey | 0
    this.#words = slab.sentNotices
  }

  /** Returns the offset of the word. */
  put(word: number): number {
    const at = this.#next
    this.#words[at] = word
    this.#next = (at + 1) & (SENT_NOTICES - 1)
    return at * NOTICE_SIZE
  }
}

/**
 * A request for a device without immediate data, such as iWARP ones: the word follows the write as a message of its
 * own. One call posts both, and both have arrived once the second has.
 */
export class NotedWork extends SendWork {
  readonly #notice: SendWork
  readonly #noticeAt: SplitAddress
  readonly #source: NoticeSource
  #isNoted = false

  constructor(libc: Libc, inlineMax: number, source: NoticeSource) {
    super(libc, inlineMax)
    this.#source = source
    this.#notice = new SendWork(libc, inlineMax)
    this.#noticeAt = new SplitAddress(Number(this.#notice.pointer))
    this.#notice.setTransfer(OPCODE_SEND, NOTICE_SIZE, source.lkey, 0)
  }

  override setIdentity(low: number, high: number): void {
    super.setIdentity(low, high)
    this.#notice.setIdentity(low, high)
  }

  override setTransfer(opcode: number, length: number, lkey: number, rkey: number): void {
    this.#isNoted = opcode === OPCODE_RDMA_WRITE_WITH_IMM
    super.setTransfer(this.#isNoted ? OPCODE_RDMA_WRITE : opcode, length, lkey, rkey)
    this.setNext(this.#isNoted ? this.#noticeAt : undefined)
  }

  override setImmediateData(word: number): void {
    const { address } = this.#source
    this.#notice.setPlaces(address, address, this.#source.put(word))
  }

  override setFlags(isSignaled: boolean, mayInline: boolean): void {
    super.setFlags(isSignaled && !this.#isNoted, mayInline)
    this.#notice.setFlags(isSignaled, true)
  }
}
