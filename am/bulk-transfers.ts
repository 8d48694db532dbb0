/**
 * Long messages and gets. Up to `partMax` bytes travel in the message itself. Longer transfers use one-sided
 * access where the driver has it: one copy, without the peer's program. Otherwise PARTs carry the bytes, and the
 * peer copies them into its segment. A long message that finds no room waits in a copy; each channel sends one at
 * a time.
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
 * Most payload bytes of a long message that travel in the message itself, and of one PART, if the driver's frames
 * are as large. Below this a copy through the ring is faster than the two system calls of one-sided access.
 */
export const PART_MAX = 64 * 1024
/**
 * The same without one-sided access: a kernel TCP connection carries 1 MiB in parts of 120 KiB 1.5 times as fast as in parts of 64 KiB.
 * A little below the longest frame, an eighth of the usual queue: else 1 MiB would leave a part of a few bytes.
 */
export const FRAME_PART_MAX = 120 * 1024

const NO_ACCESS: Access = { remoteRead: false, remoteWrite: false }

const log = openLog('fastsockets:am:bulk')

/**
 * Of this thread: memory for the copy of a transfer that waits for room, kept for the next one. A new copy each time would cost a
 * page fault for every 4 KiB. At most as large as the longest long message.
 */
let spare: Uint8Array = new Uint8Array(0)

/** A copy in memory that `keepSpare` gets back; it may be longer. */
function copyOf(bytes: Uint8Array): Uint8Array {
  const memory = spare.length < bytes.length ? new Uint8Array(bytes.length) : spare
  if (memory === spare) spare = new Uint8Array(0)
  memory.set(bytes)
  return memory
}

function keepSpare(memory: Uint8Array): void {
  if (memory.length > spare.length) spare = memory
}

/** A transfer in parts, and the message that ends it. */
interface Job {
  readonly kind: typeof KIND_LONG | typeof KIND_REPLY | typeof KIND_GET
  readonly slot: number
  readonly handler: number
  readonly words: Words
  readonly tag: Tag
  /** Offset in the receiver's segment; for the answer to a GET, in the requested region. */
  readonly offset: number
  readonly length: number
  bytes: Uint8Array
  /** `position`: bytes sent so far. `copiedFrom`: `position` when `bytes` was copied, or -1 while it is the caller's. */
  position: number
  copiedFrom: number
}

export class BulkTransfers implements CompletionSink {
  readonly partMax: number
  /** The peer's segment, set when the peer has accepted our tag. Long replies may go there one-sidedly. */
  peerSegment: RemoteSegment | undefined
  readonly #end: VirtualInterface
  readonly #writer: FrameWriter
  readonly #slots: CreditSlots
  readonly #acks: AckQueue
  readonly #log: RequestLog
  readonly #segment: Segment
  readonly #longMax: number
  /** The peer's access to our segment, registered when the peer has shown our tag. */
  #shared: Registration | undefined
  #isShared = false
  /** The same segment, registered for our own gets. */
  #local: Registration | undefined
  /** The peer has closed, and its program owns its segment again: this side neither reads nor writes it. */
  #isPeerSegmentGone = false
  /** Transfers that wait for room, and how many of them are long messages. */
  readonly jobs: Job[] = []
  longJobs = 0
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
    const { frameMax, rdmaWrite } = this.#end.capabilities
    this.partMax = Math.min(rdmaWrite ? PART_MAX : FRAME_PART_MAX, frameMax - HEADER_SIZE_MAX)
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

  /** Deregisters our segment. The peer knows that we close and does not touch it any more. */
  releaseSegment(): void {
    this.#shared?.deregister()
    this.#local?.deregister()
  }

  forgetPeerSegment(): void {
    this.#isPeerSegmentGone = true
  }

  get roomWanted(): number {
    const job = this.jobs[0]
    return job === undefined ? 0 : HEADER_SIZE_MAX + Math.min(this.partMax, job.length - job.position)
  }

  /** Reason for which the peer would return this request, judged by its MAPPED; 0 if none. */
  refusalOf(mapping: Mapping, offset: number, length: number, isGet: boolean): number {
    const { segment } = mapping
    if (segment === undefined) return UNDELIVERABLE.BAD_TAG
    if (length > segment.longMax) return UNDELIVERABLE.TOO_LONG
    const isWithin = offset + length <= segment.length && (isGet || !segment.isReadOnly)
    return isWithin ? 0 : UNDELIVERABLE.OUT_OF_BOUNDS
  }

  /** Reason to return a GET of the peer; 0 if this side answers it. */
  faultOfGet(offset: number, length: number): number {
    if (length > this.#longMax) return UNDELIVERABLE.TOO_LONG
    return this.#segment.contains(offset, length) ? 0 : UNDELIVERABLE.OUT_OF_BOUNDS
  }

  /** Reason to return a LONG of the peer; 0 if this side accepts it. */
  faultOfLong(offset: number, length: number): number {
    return this.faultOfGet(offset, length) || (this.#segment.isReadOnly ? UNDELIVERABLE.OUT_OF_BOUNDS : 0)
  }

  // Sending. The caller acquires the slot after success.

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
    this.longJobs++
    this.#begin({ kind: KIND_LONG, slot, handler, words, tag, offset, length, bytes: payload })
    return OK
  }

  sendGet(mapping: Mapping, slot: number, offset: number, length: number): Status {
    const { tag } = mapping
    const kind = tag.isZero ? KIND_GET : KIND_GET | FLAG
    const at = this.#writer.reserve(kind, 0, slot, 0, extraOf(tag), 0, undefined, tag)
    if (at < 0) return at as Status
    this.#writer.putRegion(offset, length)
    this.#writer.commit(0)
    return OK
  }

  /** Reads bytes one-sidedly. False if that is not possible: then the caller sends a GET. */
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
    if (this.jobs.length === 0 && this.#trySendReply(slot, handler, words, payload, offset)) {
      this.#acks.answer(slot)
      return
    }
    this.#begin({ kind: KIND_REPLY, slot, handler, words, tag: ZERO_TAG, offset, length, bytes: payload })
  }

  /** Continues queued transfers; true if none is left. */
  pump(): boolean {
    for (;;) {
      const job = this.jobs[0]
      if (job === undefined) return true
      if (!this.#sendParts(job) || !this.#sendLast(job)) return false
      this.jobs.shift()
      if (job.copiedFrom >= 0) keepSpare(job.bytes)
      if (job.kind === KIND_LONG) this.longJobs--
    }
  }

  /** Drops queued transfers: the channel has ended. */
  stop(): void {
    this.jobs.length = 0
    this.longJobs = 0
  }

  // Receiving.

  put(offset: number, bytes: Uint8Array, at: number, length: number): void {
    copyBytes(bytes, at, this.#segment.bytes, offset, length)
  }

  /** False if the peer may not send this part. Drops a part of a message that will be returned. */
  handlePart(
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

  /** Sends a message with a region. `payload` travels in it; undefined if its bytes have been transferred already. */
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
    // The flag means a region in a REPLY, and a tag in a request.
    const hasFlag = kind === KIND_REPLY || !tag.isZero
    const writer = this.#writer
    const inFrame = payload === undefined ? 0 : length
    const flag = hasFlag ? FLAG : 0
    const at = writer.reserve(kind | flag, handler, slot, words.count, extraOf(tag), inFrame, words, tag)
    if (at < 0) return at as Status
    writer.putRegion(offset, length)
    if (payload === undefined) writer.commit(0)
    else writer.commitPayload(at, payload, 0, length)
    return OK
  }

  /** Begins a transfer in parts. Unsent bytes are copied: the caller may reuse its memory on return. */
  #begin(job: Omit<Job, 'position' | 'copiedFrom'>): void {
    const begun = this.#push({ ...job, words: job.words.copy() })
    this.pump()
    if (this.jobs.includes(begun)) {
      begun.bytes = copyOf(begun.bytes.subarray(begun.position))
      begun.copiedFrom = begun.position
    }
  }

  #push(job: Omit<Job, 'position' | 'copiedFrom'>): Job {
    const pushed = { ...job, position: 0, copiedFrom: -1 }
    this.jobs.push(pushed)
    return pushed
  }

  #sendParts(job: Job): boolean {
    const writer = this.#writer
    const slot = job.kind === KIND_LONG ? NO_SLOT : job.slot
    while (job.position < job.length) {
      const length = Math.min(this.partMax, job.length - job.position)
      const kind = job.tag.isZero ? KIND_PART : KIND_PART | FLAG
      const at = writer.reserve(kind, 0, slot, 0, extraOf(job.tag), length, undefined, job.tag)
      if (at < 0) return false
      writer.putRegion(job.offset + job.position, length)
      writer.commitPayload(at, job.bytes, job.position - Math.max(0, job.copiedFrom), length)
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

  /** Undefined if the driver cannot register, for example at the limit of locked memory: then bytes go in parts. */
  #register(bytes: Uint8Array, access: Access): Registration | undefined {
    try {
      return this.#end.register(bytes, access)
    } catch (error) {
      if (!(error instanceof NicError)) throw error
      log('%d bytes are not registered: %s', bytes.length, error.message)
      return undefined
    }
  }

  /** False if one-sided access is not possible. */
  #write(memory: RemoteMemory, payload: Uint8Array, offset: number): boolean {
    const local = this.#register(payload, NO_ACCESS)
    if (local === undefined) return false
    try {
      return this.#isComplete(this.#end.rdmaWrite(local, 0, memory, offset, payload.length, 0))
    } finally {
      local.deregister()
    }
  }

  /** Polls until the one operation under way has completed: the caller owns its memory again on return. */
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
