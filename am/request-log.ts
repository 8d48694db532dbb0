import { copyBytes } from '../nic/index.ts'
import type { Message } from './message.ts'
import { WORDS_MAX } from './message-layout.ts'
import type { UndeliverableReason } from './undeliverable.ts'
import type { Words } from './words.ts'

/** A call that waits for the answer to its request. */
export interface PendingCall {
  /** Runs within the channel's turn. The message is valid until this returns. */
  handleReply(reply: Message): void
  handleReturn(reason: UndeliverableReason): void
  handleNoReply(): void
  handleClosed(): void
}

const NO_PAYLOAD = new Uint8Array(0)
/** Smallest buffer for a payload, so that a slot seldom needs a new one. */
const BUFFER_SIZE_MIN = 256

/**
 * Requests under way, by slot: a message that cannot be delivered returns with its words and payload. Memory per
 * conversation: at most credits x the largest medium payload; buffers grow with use.
 */
export class RequestLog {
  readonly kinds: Uint8Array
  readonly handlers: Uint8Array
  readonly destinations: Int32Array
  readonly lengths: Uint32Array
  /** Where in our own segment the bytes of a GET go. */
  readonly offsets: Float64Array
  private readonly wordCounts: Uint8Array
  private readonly words: Int32Array
  private readonly buffers: Uint8Array[]
  /** Payloads of long messages: the caller's own memory, not a copy. */
  private readonly borrowed: (Uint8Array | undefined)[]
  /** Calls that wait for the answer. */
  readonly calls: (PendingCall | undefined)[]

  constructor(size: number) {
    this.kinds = new Uint8Array(size)
    this.handlers = new Uint8Array(size)
    this.destinations = new Int32Array(size)
    this.lengths = new Uint32Array(size)
    this.offsets = new Float64Array(size)
    this.wordCounts = new Uint8Array(size)
    this.words = new Int32Array(size * WORDS_MAX)
    this.buffers = new Array(size).fill(NO_PAYLOAD)
    this.borrowed = new Array(size).fill(undefined)
    this.calls = new Array(size).fill(undefined)
  }

  record(
    slot: number,
    kind: number,
    destination: number,
    handler: number,
    words: Words,
    call: PendingCall | undefined,
  ): void {
    this.kinds[slot] = kind
    this.handlers[slot] = handler
    this.destinations[slot] = destination
    this.lengths[slot] = 0
    this.wordCounts[slot] = words.count
    const at = slot * WORDS_MAX
    for (let i = 0; i < words.count; i++) this.words[at + i] = words.values[i] as number
    if (call !== undefined) this.calls[slot] = call
  }

  /** Keeps a copy of the payload. */
  copy(slot: number, payload: Uint8Array): void {
    const { length } = payload
    let buffer = this.buffers[slot] as Uint8Array
    if (buffer.length < length) {
      buffer = new Uint8Array(Math.max(BUFFER_SIZE_MIN, 2 ** Math.ceil(Math.log2(length))))
      this.buffers[slot] = buffer
    }
    copyBytes(payload, 0, buffer, 0, length)
    this.lengths[slot] = length
  }

  /** Keeps the caller's payload itself until `settle`. */
  borrow(slot: number, payload: Uint8Array): void {
    this.borrowed[slot] = payload
    this.lengths[slot] = payload.length
  }

  /** Copies the words into `target`; returns how many. */
  copyWords(slot: number, target: Int32Array): number {
    const count = this.wordCounts[slot] as number
    for (let i = 0; i < count; i++) target[i] = this.words[slot * WORDS_MAX + i] as number
    return count
  }

  /** Memory that begins with the payload. Valid until the slot is used again. */
  payloadMemory(slot: number): Uint8Array {
    return this.borrowed[slot] ?? (this.buffers[slot] as Uint8Array)
  }

  /** The slot is about to be free: drops its references, and returns the call that waited, if any. */
  settle(slot: number): PendingCall | undefined {
    if (this.borrowed[slot] !== undefined) this.borrowed[slot] = undefined
    const call = this.calls[slot]
    if (call !== undefined) this.calls[slot] = undefined
    return call
  }
}
