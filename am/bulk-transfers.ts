/**
 * Long messages and gets. Up to `PART_MAX` bytes travel in the message itself. More go by one-sided access where the
 * driver has it: one copy, and the peer's program has no part in it. Else they go in PARTs that the peer puts into its
 * segment; what finds no room at once waits in a copy, one long message at a time for each channel.
 */
import {
  type Access,
  type CompletionSink,
  copyBytes,
  NicError,
  NO_RESOURCE,
  OK,
  openLog,
  type Registration,
  type RemoteMemory,
  type Status,
  type VirtualInterface,
} from '../nic/index.ts'
import type { AckQueue } from './ack-queue.ts'
import type { CreditSlots } from './credit-slots.ts'
import type { FrameWriter } from './frame-writer.ts'
import type { Mapping, RemoteSegment } from './mapping.ts'
import {
  FLAG,
  HEADER_SIZE_MAX,
  KIND_GET,
  KIND_LONG,
  KIND_PART,
  KIND_REPLY,
  NO_SLOT,
  REGION_SIZE,
  TAG_SIZE,
} from './message-layout.ts'
import type { RequestLog } from './request-log.ts'
import type { Segment } from './segment.ts'
import { type Tag, ZERO_TAG } from './tag.ts'
import { UNDELIVERABLE } from './undeliverable.ts'
import { NO_WORDS, type Words } from './words.ts'

/**
 * Bytes of a long message that travel in the message itself, and bytes in one PART, if the driver's frames hold as
 * much. Below this a copy through the ring is faster than two system calls' worth of one-sided access.
 */
export const PART_MAX = 64 * 1024

const NO_ACCESS: Access = { remoteRead: false, remoteWrite: false }

const log = openLog('fastsockets:am:bulk')

/** A transfer in parts that is under way, and the message that ends it. */
interface Job {
  readonly kind: typeof KIND_LONG | typeof KIND_REPLY | typeof KIND_GET
  readonly slot: number
  readonly handler: number
  readonly words: Words
  readonly tag: Tag
  /** In the receiver's segment; for the answer to a GET, in the region that it asked for. */
  readonly offset: number
  readonly length: number
  bytes: Uint8Array
  /** What of `bytes` is sent, and how much had been sent when they were copied. */
  position: number
  copiedFrom: number
}

export class BulkTransfers implements CompletionSink {
  readonly partMax: number
  /** The peer's segment, once we know it: long replies may go there one-sidedly. */
  peerSegment: RemoteSegment | undefined
  readonly #end: VirtualInterface
  readonly #writer: FrameWriter
  readonly #slots: CreditSlots
  readonly #acks: AckQueue
  readonly #log: RequestLog
  readonly #segment: Segment
  readonly #longMax: number
  /** What the peer reaches of our segment, once it has shown our tag. */
  #shared: Registration | undefined
  #isShared = false
  /** The same segment for our own gets. */
  #local: Registration | undefined
  /** The peer gives its segment back to its program: nothing may be written or read there any more. */
  #isPeerSegmentGone = false
  readonly #jobs: Job[] = []
  #longJobs = 0
  #completion: Status | undefined

  constructor(
    writer: FrameWriter,
    slots: CreditSlots,
    acks: AckQueue,
    log: RequestLog,
    options: { readonly segment: Segment; readonly longMax: number },
  ) {
    this.#end = writer.end
    this.#writer = writer
    this.#slots = slots
    this.#acks = acks
    this.#log = log
    this.#segment = options.segment
    this.#longMax = options.longMax
    this.partMax = Math.min(PART_MAX, this.#end.capabilities.frameMax - HEADER_SIZE_MAX)
  }

  get segmentBytes(): Uint8Array {
    return this.#segment.bytes
  }

  shareSegment(): Uint8Array | undefined {
    const { rdmaRead, rdmaWrite } = this.#end.capabilities
    const { bytes, isReadOnly } = this.#segment
    if (!this.#isShared && bytes.length > 0 && (rdmaRead || rdmaWrite)) {
      this.#isShared = true
      this.#shared = this.#register(bytes, { remoteRead: true, remoteWrite: !isReadOnly })
    }
    return this.#shared?.key
  }

  /** The peer knows that we close: it does not touch our segment any more. */
  releaseSegment(): void {
    this.#shared?.deregister()
    this.#local?.deregister()
  }

  forgetPeerSegment(): void {
    this.#isPeerSegmentGone = true
  }

  /** A long message is on its way in parts: requests that follow would overtake it. */
  get isSendingLong(): boolean {
    return this.#longJobs > 0
  }

  get roomWanted(): number {
    const job = this.#jobs[0]
    return job === undefined ? 0 : HEADER_SIZE_MAX + Math.min(this.partMax, job.length - job.position)
  }

  /** Why the peer would not take this, as far as it has told us; 0 if it would. */
  refusalOf(mapping: Mapping, offset: number, length: number, isGet: boolean): number {
    const { segment } = mapping
    if (segment === undefined) return UNDELIVERABLE.BAD_TAG
    if (length > segment.longMax) return UNDELIVERABLE.TOO_LONG
    const isWithin = offset + length <= segment.length && (isGet || !segment.isReadOnly)
    return isWithin ? 0 : UNDELIVERABLE.OUT_OF_BOUNDS
  }

  /** Why we do not give this to a get; 0 if we do. */
  faultOfGet(offset: number, length: number): number {
    if (length > this.#longMax) return UNDELIVERABLE.TOO_LONG
    return this.#segment.contains(offset, length) ? 0 : UNDELIVERABLE.OUT_OF_BOUNDS
  }

  /** Why we do not take this long message; 0 if we do. */
  faultOfLong(offset: number, length: number): number {
    return this.faultOfGet(offset, length) || (this.#segment.isReadOnly ? UNDELIVERABLE.OUT_OF_BOUNDS : 0)
  }

  // Sending. The slot is taken by the caller after success.

  sendLong(
    mapping: Mapping,
    handler: number,
    slot: number,
    words: Words,
    payload: Uint8Array,
    offset: number,
  ): Status {
    const { tag } = mapping
    const { length } = payload
    if (length <= this.partMax) {
      return this.#sendWhole(KIND_LONG, slot, handler, words, tag, offset, length, payload)
    }
    const memory = this.#memoryOf(mapping.segment)
    if (memory !== undefined && this.#end.capabilities.rdmaWrite) {
      if (!this.#end.hasRoom(HEADER_SIZE_MAX)) return NO_RESOURCE
      if (this.#write(memory, payload, offset)) {
        return this.#sendWhole(KIND_LONG, slot, handler, words, tag, offset, length, undefined)
      }
    }
    if (!this.#end.hasRoom(HEADER_SIZE_MAX + this.partMax)) return NO_RESOURCE
    this.#longJobs++
    this.#begin({ kind: KIND_LONG, slot, handler, words, tag, offset, length, bytes: payload })
    return OK
  }

  sendGet(mapping: Mapping, slot: number, offset: number, length: number): Status {
    const { tag } = mapping
    const kind = tag.isZero ? KIND_GET : KIND_GET | FLAG
    const at = this.#writer.reserve(kind, 0, slot, 0, extraOf(tag), 0)
    if (at < 0) return at as Status
    if (!tag.isZero) this.#writer.putTag(tag)
    this.#writer.putRegion(offset, length)
    this.#writer.commit(0)
    return OK
  }

  /** Fetches bytes one-sidedly; false if that cannot be done. */
  read(mapping: Mapping, offset: number, length: number, into: number): boolean {
    const memory = this.#memoryOf(mapping.segment)
    if (memory === undefined || !this.#end.capabilities.rdmaRead) return false
    if (length === 0) return true
    this.#local ??= this.#register(this.#segment.bytes, NO_ACCESS)
    if (this.#local === undefined) return false
    return this.#isComplete(this.#end.rdmaRead(this.#local, into, memory, offset, length, 0))
  }

  sendReply(slot: number, handler: number, words: Words, payload: Uint8Array, offset: number): void {
    const { length } = payload
    if (this.#jobs.length === 0 && this.#trySendReply(slot, handler, words, payload, offset)) {
      this.#acks.answer(slot)
      return
    }
    this.#begin({ kind: KIND_REPLY, slot, handler, words, tag: ZERO_TAG, offset, length, bytes: payload })
  }

  /** Goes on with what is under way; true if nothing is left. */
  pump(): boolean {
    for (;;) {
      const job = this.#jobs[0]
      if (job === undefined) return true
      if (!this.#sendParts(job) || !this.#sendLast(job)) return false
      this.#jobs.shift()
      if (job.kind === KIND_LONG) this.#longJobs--
    }
  }

  /** Nothing more can be sent. */
  stop(): void {
    this.#jobs.length = 0
    this.#longJobs = 0
  }

  // Receiving.

  put(offset: number, bytes: Uint8Array, at: number, length: number): void {
    copyBytes(bytes, at, this.#segment.bytes, offset, length)
  }

  /** False if the peer may not send this part. A part of what will be returned is passed over. */
  takePart(
    isOwnTag: boolean,
    slot: number,
    offset: number,
    bytes: Uint8Array,
    at: number,
    length: number,
  ): boolean {
    if (slot === NO_SLOT) {
      if (isOwnTag && this.faultOfLong(offset, length) === 0) this.put(offset, bytes, at, length)
      return true
    }
    if (!this.#slots.isOut(slot)) return false
    if (this.#log.kinds[slot] === KIND_GET) {
      if (offset + length > (this.#log.lengths[slot] as number)) return false
      this.put((this.#log.offsets[slot] as number) + offset, bytes, at, length)
    } else if (this.faultOfLong(offset, length) === 0) {
      this.put(offset, bytes, at, length)
    }
    return true
  }

  answerGet(slot: number, offset: number, length: number): void {
    const bytes = this.#segment.bytes.subarray(offset, offset + length)
    this.#push({
      kind: KIND_GET,
      slot,
      handler: 0,
      words: NO_WORDS,
      tag: ZERO_TAG,
      offset: 0,
      length,
      bytes,
    })
    this.pump()
  }

  handleCompletion(_workId: number, status: Status): void {
    this.#completion = status
  }

  #trySendReply(slot: number, handler: number, words: Words, payload: Uint8Array, offset: number): boolean {
    const { length } = payload
    if (length <= this.partMax) {
      return this.#sendWhole(KIND_REPLY, slot, handler, words, ZERO_TAG, offset, length, payload) === OK
    }
    const room = this.peerSegment?.length ?? 0
    const memory = this.#memoryOf(this.peerSegment)
    const isWithin = offset + length <= room && length <= (this.peerSegment?.longMax ?? 0)
    if (memory === undefined || !isWithin || !this.#end.hasRoom(HEADER_SIZE_MAX)) return false
    return (
      this.#write(memory, payload, offset) &&
      this.#sendWhole(KIND_REPLY, slot, handler, words, ZERO_TAG, offset, length, undefined) === OK
    )
  }

  /** A message with a region, whose bytes are in it or there already. */
  #sendWhole(
    kind: number,
    slot: number,
    handler: number,
    words: Words,
    tag: Tag,
    offset: number,
    length: number,
    payload: Uint8Array | undefined,
  ): Status {
    // A reply says by the flag that it has a region; a request, that it has a tag.
    const hasFlag = kind === KIND_REPLY || !tag.isZero
    const writer = this.#writer
    const inFrame = payload === undefined ? 0 : length
    const at = writer.reserve(hasFlag ? kind | FLAG : kind, handler, slot, words.count, extraOf(tag), inFrame)
    if (at < 0) return at as Status
    if (!tag.isZero) writer.putTag(tag)
    writer.putRegion(offset, length)
    writer.putWords(words)
    if (payload !== undefined) copyBytes(payload, 0, this.#end.sendBytes, at, length)
    writer.commit(inFrame)
    return OK
  }

  /** Begins a transfer in parts. What is not sent at once is copied: the caller may reuse its memory. */
  #begin(job: Omit<Job, 'position' | 'copiedFrom'>): void {
    const begun = this.#push({ ...job, words: job.words.copy() })
    this.pump()
    if (this.#jobs.includes(begun)) {
      // Not `slice`: that of a Buffer is no copy.
      begun.bytes = new Uint8Array(begun.bytes.subarray(begun.position))
      begun.copiedFrom = begun.position
    }
  }

  #push(job: Omit<Job, 'position' | 'copiedFrom'>): Job {
    const pushed = { ...job, position: 0, copiedFrom: 0 }
    this.#jobs.push(pushed)
    return pushed
  }

  #sendParts(job: Job): boolean {
    const writer = this.#writer
    const slot = job.kind === KIND_LONG ? NO_SLOT : job.slot
    while (job.position < job.length) {
      const length = Math.min(this.partMax, job.length - job.position)
      const kind = job.tag.isZero ? KIND_PART : KIND_PART | FLAG
      const at = writer.reserve(kind, 0, slot, 0, extraOf(job.tag), length)
      if (at < 0) return false
      if (!job.tag.isZero) writer.putTag(job.tag)
      writer.putRegion(job.offset + job.position, length)
      copyBytes(job.bytes, job.position - job.copiedFrom, this.#end.sendBytes, at, length)
      writer.commit(length)
      job.position += length
    }
    return true
  }

  #sendLast(job: Job): boolean {
    const { kind, slot, handler, words, tag, offset, length } = job
    if (kind === KIND_GET) {
      if (this.#writer.reserve(KIND_REPLY, 0, slot, 0, 0, 0) < 0) return false
      this.#writer.commit(0)
    } else if (this.#sendWhole(kind, slot, handler, words, tag, offset, length, undefined) !== OK) {
      return false
    }
    if (kind !== KIND_LONG) this.#acks.answer(slot)
    return true
  }

  #memoryOf(segment: RemoteSegment | undefined): RemoteMemory | undefined {
    return this.#isPeerSegmentGone ? undefined : segment?.memory
  }

  /** Undefined if the driver cannot, for want of memory that may be locked, perhaps: then bytes go in parts. */
  #register(bytes: Uint8Array, access: Access): Registration | undefined {
    try {
      return this.#end.register(bytes, access)
    } catch (error) {
      if (!(error instanceof NicError)) throw error
      log('%d bytes are not registered: %s', bytes.length, error.message)
      return undefined
    }
  }

  /** False if that cannot be done one-sidedly. */
  #write(memory: RemoteMemory, payload: Uint8Array, offset: number): boolean {
    const local = this.#register(payload, NO_ACCESS)
    if (local === undefined) return false
    try {
      return this.#isComplete(this.#end.rdmaWrite(local, 0, memory, offset, payload.length, 0))
    } finally {
      local.deregister()
    }
  }

  /** Waits for the one operation that is under way: its memory is the caller's again when we return. */
  #isComplete(posted: Status): boolean {
    if (posted !== OK) return false
    this.#completion = undefined
    while (this.#completion === undefined && this.#end.state === 'open') this.#end.pollCompletions(this, 1)
    return this.#completion === OK
  }
}

function extraOf(tag: Tag): number {
  return tag.isZero ? REGION_SIZE : TAG_SIZE + REGION_SIZE
}
