/**
 * Takes messages out of a byte stream: knows heads and places, and neither sockets nor transports.
 *
 *   take(bytes)                    from the stream, in any pieces; stops before bytes that have no place yet
 *   room(lengthMax), advance(n)    the place of the next bytes, for those who can write there directly
 *   serve, beginTry, endTry        a receive was posted; a `tryRecv` runs
 *
 * A message goes straight to the receive that is posted when it begins. Otherwise it waits in the stream, where the window
 * bounds it, or, from `keepFrom` bytes on, in memory of its own, at most `KEPT_MAX` bytes of all messages.
 */
import { copyBytes, hasBytes } from '../../nic/index.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import { systemError } from '../host/socket-errors.ts'
import {
  HEAD_SIZE,
  KEPT_MAX,
  MESSAGE_MAX,
  PREAMBLE_MAGIC,
  PREAMBLE_SIZE,
  PREAMBLE_VERSION,
} from './message-layout.ts'
import type { Operation, Operations } from './operations.ts'

export const END_WITHIN = 'the peer ended within a message'
const NO_BYTES = new Uint8Array(0)
/** Where bytes go that a truncated message loses. */
const LOST = Buffer.allocUnsafeSlow(64 * 1024)

export class MessageReceiver {
  /** What the peer did that no message socket does. */
  fault: string | undefined
  /** Messages of at least this length are kept if no receive is posted. */
  keepFrom = Number.POSITIVE_INFINITY
  /** Length of the message that the running `tryRecv` has got; -1 if none has, or none runs. */
  taken = -1

  readonly #receives: Operations
  readonly #noteKept: (length: number) => void
  /** A preamble or a head that has not arrived whole. */
  readonly #head = Buffer.allocUnsafeSlow(PREAMBLE_SIZE)
  #headLength = 0
  #isGreeted = false
  /** Of the message that arrives: its length, or -1 before its head is whole; how much of it has arrived. */
  #length = -1
  #done = 0
  /** Its place; undefined before it has one. Bytes beyond the end of this are lost. */
  #place: Uint8Array | undefined
  /** The receive that gave the place. */
  #operation: Operation | undefined
  /** The buffer of the `tryRecv` that runs. */
  #into: Uint8Array | undefined
  /** Whole messages that no receive has taken, and their bytes, with those of one that arrives. */
  readonly #kept: Uint8Array[] = []
  #keptLength = 0

  /** `noteKept` counts bytes in the budget of the process; negative if fewer. */
  constructor(receives: Operations, noteKept: (length: number) => void) {
    this.#receives = receives
    this.#noteKept = noteKept
  }

  /** True if the next bytes of the stream have a place. */
  get wantsBytes(): boolean {
    return this.fault === undefined && (this.#length < 0 || this.#findPlace() !== undefined)
  }

  /** Length of the next message; -1 if its head has not arrived. */
  get nextLength(): number {
    return this.#kept[0]?.length ?? this.#length
  }

  /** True if the stream ended within a message or a head. */
  get isWithin(): boolean {
    return this.#headLength > 0 || this.#length > this.#done
  }

  /** True if something has arrived that the program has not received. */
  get hasUnreceived(): boolean {
    return this.#kept.length > 0 || this.#length >= 0 || this.#headLength > 0
  }

  /** True if a whole message is there, with the `waiting` bytes that the stream keeps. */
  isReady(waiting: number): boolean {
    return this.#kept.length > 0 || (this.#length >= 0 && this.#length - this.#done <= waiting)
  }

  /** Takes bytes as far as they have a place; returns how many. Hot. */
  take(bytes: Uint8Array, offset: number, length: number): number {
    if (this.#takesWhole(bytes, offset, length)) return length
    const end = offset + length
    let at = offset
    while (this.fault === undefined) {
      if (this.#length < 0) {
        if (at === end) break
        at = this.#takeHead(bytes, at, end)
        continue
      }
      const place = this.#findPlace()
      if (place === undefined) break
      const count = Math.min(end - at, this.#length - this.#done)
      const room = Math.min(count, place.length - this.#done)
      if (room > 0) copyBytes(bytes, at, place, this.#done, room)
      this.#done += count
      at += count
      if (this.#done < this.#length) break
      this.#finish()
    }
    return at - offset
  }

  /** The usual case: the bytes are one message, which the buffer of a `tryRecv` holds. */
  #takesWhole(bytes: Uint8Array, offset: number, length: number): boolean {
    const into = this.#into
    const size = length - HEAD_SIZE
    if (into === undefined || size < 0 || size > into.length || size > MESSAGE_MAX) return false
    if (this.#length >= 0 || this.#headLength > 0 || !this.#isGreeted || this.fault !== undefined)
      return false
    for (let i = 0; i < HEAD_SIZE; i++) if (bytes[offset + i] !== ((size >>> (8 * i)) & 0xff)) return false
    copyBytes(bytes, offset + HEAD_SIZE, into, 0, size)
    this.#into = undefined
    this.taken = size
    return true
  }

  /** The place of the next bytes of a message, at most `lengthMax`; undefined if none is known. `advance` must follow. */
  room(lengthMax: number): Uint8Array | undefined {
    const place = this.#length < 0 ? undefined : this.#findPlace()
    if (place === undefined) return undefined
    const count = Math.min(lengthMax, this.#length - this.#done)
    const end = Math.min(place.length, this.#done + count)
    return end > this.#done ? place.subarray(this.#done, end) : LOST.subarray(0, count)
  }

  /** `length` bytes were put into `room`. */
  advance(length: number): void {
    this.#done += length
    if (this.#done === this.#length) this.#finish()
  }

  /** Gives kept messages to posted receives. Further bytes of the stream may have a place now. */
  serve(): void {
    while (this.#kept.length > 0) {
      const first = this.#receives.firstFillable
      if (first === undefined) return
      first.done = this.#takeKept(first.bytes)
      this.#receives.finishFirst()
    }
    // A message without bytes.
    if (this.#length === 0) this.take(NO_BYTES, 0, 0)
  }

  /** A `tryRecv` begins: the next message may go to `into`. */
  beginTry(into: Uint8Array): void {
    if (this.#kept.length > 0) {
      this.taken = this.#takeKept(into)
      return
    }
    this.#into = into
    if (this.#length === 0) this.take(NO_BYTES, 0, 0)
  }

  /** The `tryRecv` ends: returns `taken`. What has arrived of a message that is not whole is kept. */
  endTry(): number {
    const { taken } = this
    const into = this.#into
    this.taken = -1
    this.#into = undefined
    if (into === undefined || this.#place !== into) return taken
    this.#place = this.#done === 0 ? undefined : this.#allocate()
    if (this.#place !== undefined) copyBytes(into, 0, this.#place, 0, this.#done)
    return taken
  }

  /** The socket is closed. */
  clear(): void {
    this.#noteKept(-this.#keptLength)
    this.#keptLength = 0
    this.#kept.length = 0
    this.#place = undefined
    this.#operation = undefined
    this.fault ??= 'closed'
  }

  #takeHead(bytes: Uint8Array, at: number, end: number): number {
    const size = this.#isGreeted ? HEAD_SIZE : PREAMBLE_SIZE
    const head = this.#head
    let next = at
    while (next < end && this.#headLength < size) head[this.#headLength++] = bytes[next++] as number
    if (this.#headLength < size) return next
    this.#headLength = 0
    if (this.#isGreeted) this.#begin(head.readUInt32LE(0))
    else this.#greet(head.readUInt32LE(0), head.readUInt32LE(4))
    return next
  }

  #greet(magic: number, version: number): void {
    this.#isGreeted = true
    if (magic !== PREAMBLE_MAGIC) this.fault = 'the peer is no message socket'
    else if (version !== PREAMBLE_VERSION) this.fault = `the peer's message sockets have version ${version}`
  }

  #begin(length: number): void {
    if (length > MESSAGE_MAX) {
      this.fault = `the peer announced a message of ${length} bytes, more than ${MESSAGE_MAX}`
      return
    }
    this.#length = length
    this.#done = 0
  }

  #findPlace(): Uint8Array | undefined {
    if (this.#place !== undefined) return this.#operation === undefined ? this.#place : this.#postedPlace()
    const into = this.#into
    if (into !== undefined) {
      // What does not fit is kept whole: another buffer may come for it before it has arrived.
      if (into.length >= this.#length) this.#place = into
      else this.#place = this.#allocate()
      return this.#place
    }
    this.#operation = this.#receives.firstFillable
    if (this.#operation !== undefined) this.#place = this.#operation.bytes
    else if (this.#length >= this.keepFrom && this.#keptLength + this.#length <= KEPT_MAX)
      this.#place = this.#allocate()
    return this.#place
  }

  /** The program may have transferred or shrunk the buffer of a posted receive: then the message is lost. */
  #postedPlace(): Uint8Array {
    const { bytes, length, reject } = this.#operation as Operation
    if (hasBytes(bytes, length)) return bytes
    this.#operation = undefined
    this.#receives.waiting.shift()
    reject(systemError('EFAULT', 'read'))
    this.#place = NO_BYTES
    return NO_BYTES
  }

  #allocate(): Uint8Array {
    this.#keptLength += this.#length
    this.#noteKept(this.#length)
    return allocateFresh(this.#length)
  }

  /** The message is whole. */
  #finish(): void {
    const place = this.#place as Uint8Array
    const length = this.#length
    const operation = this.#operation
    this.#length = -1
    this.#place = undefined
    this.#operation = undefined
    if (operation !== undefined) {
      operation.done = length
      this.#receives.finishFirst()
    } else if (place === this.#into) {
      this.#into = undefined
      this.taken = length
    } else if (place !== NO_BYTES || length === 0) {
      this.#keep(place)
    }
  }

  #keep(message: Uint8Array): void {
    this.#kept.push(message)
    if (this.#into === undefined) return this.serve()
    this.taken = this.#takeKept(this.#into)
    this.#into = undefined
  }

  /** Moves the first kept message to `into`; returns its length. */
  #takeKept(into: Uint8Array): number {
    const message = this.#kept.shift() as Uint8Array
    const { length } = message
    copyBytes(message, 0, into, 0, Math.min(length, into.length))
    this.#keptLength -= length
    this.#noteKept(-length)
    return length
  }
}
