import { systemError } from '../host/socket-errors.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import { FastEnd } from './fast-end.ts'
import { EAGER_MAX, encodeHead, HEAD_SIZE, PREAMBLE_SIZE } from './message-layout.ts'
import { END_WITHIN, MessageReceiver } from './message-receiver.ts'
import { assertMessage, END, type MessageSocket } from './message-socket.ts'
import { Operations } from './operations.ts'
import { assertBytes, forgiveGetters, OPERATIONS_MAX, type ReadinessQueue } from './raw-socket.ts'

/** The most messages of the channel that a refused `trySend` polls for room. */
const CREDIT_POLL_MESSAGES = 16
/** Polls without a byte after which a `tryRecv` gives up a message that is arriving: some 50 us. */
const REST_POLLS = 500
/** Shorter messages that find no room are copied: the copy costs less than the care for the program's memory. */
const LENT_MIN = 64 * 1024
/** A message from this length on is sent in parts, as room comes. */
const PARTS_MIN = 32 * 1024

/** A message socket over a channel: messages are framed in a stream. */
export class FastMessageSocket extends FastEnd implements MessageSocket {
  static {
    forgiveGetters(FastMessageSocket.prototype, object => #receiver in object)
  }

  readonly #receives: Operations
  readonly #receiver: MessageReceiver
  #hasSent = false
  /** `keepFrom` of the receiver while no send waits. */
  #keepFrom = Number.POSITIVE_INFINITY
  /** Counts what `place` and `handlePosted` took. */
  #placed = 0

  constructor() {
    const receives = new Operations()
    super(receives)
    this.#receives = receives
    this.#receiver = new MessageReceiver(receives, length => this.polledChannel().unread.noteKept(length))
  }

  get isReadable(): boolean {
    return this.hasEnding() || this.#hasMessage()
  }

  override send(bytes: Uint8Array): Promise<number> {
    try {
      assertBytes(bytes)
      assertMessage(bytes)
    } catch (error) {
      return Promise.reject(error)
    }
    const sent = super.send(bytes)
    if (this.isSending()) this.#keepWhileSending()
    return sent
  }

  trySend(bytes: Uint8Array): boolean {
    this.assertMaySend(bytes)
    assertMessage(bytes)
    if (!this.isSending() && this.#tryOnce(bytes)) return true
    this.#keepWhileSending()
    // Room arrives through the ring, and a program that polls may not let the event loop run: poll here.
    const stream = this.stream()
    stream.channel.pollNow(CREDIT_POLL_MESSAGES)
    if (!this.isSending() && !stream.refusesWrites && this.#tryOnce(bytes)) return true
    return false
  }

  recv(into: Uint8Array): Promise<number> {
    const receives = this.#receives
    try {
      assertBytes(into)
      this.assertOpen('read')
      if (receives.waiting.length >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'read')
      const end = this.#hasMessage() ? undefined : this.ending(END)
      if (end !== undefined) return Promise.resolve(end)
    } catch (error) {
      return Promise.reject(error)
    }
    const received = receives.add(into)
    const stream = this.stream()
    this.#receiver.serve()
    if (stream.waitingLength > 0) stream.deliver()
    else stream.startReading()
    this.updateLife()
    return received
  }

  tryRecv(into: Uint8Array): number | undefined {
    assertBytes(into)
    this.assertOpen('read')
    if (this.#receives.waiting.length > 0) return undefined
    const receiver = this.#receiver
    let length = -1
    receiver.beginTry(into)
    try {
      if (receiver.taken < 0) this.#poll()
    } finally {
      length = receiver.endTry()
    }
    if (length >= 0) return length
    this.#keepLong()
    return this.ending(END)
  }

  nextLength(): number | undefined {
    this.assertOpen('read')
    const receiver = this.#receiver
    if (receiver.nextLength < 0) {
      const stream = this.stream()
      stream.channel.pollNow(1)
      if (receiver.nextLength < 0 && stream.isReadable) stream.deliver()
    }
    return receiver.nextLength < 0 ? this.ending(END) : receiver.nextLength
  }

  override close(isReset = false): void {
    if (this.isClosed) return
    const { hasUnreceived } = this.#receiver
    this.#receiver.clear()
    super.close(isReset || hasUnreceived)
  }

  override watch(queue: ReadinessQueue | undefined): void {
    super.watch(queue)
    if (queue === undefined) return
    this.#keepLong()
    this.stream().startReading()
  }

  // The methods of `StreamSink`.

  readonly copies = true

  get isReading(): boolean {
    return this.#receiver.wantsBytes
  }

  place(bytes: Uint8Array, offset: number, length: number): number {
    const count = this.#receiver.take(bytes, offset, length)
    if (count > 0) this.#placed = (this.#placed + 1) | 0
    // A `tryRecv` asks itself.
    if (this.#receiver.taken < 0) this.#noteReceived()
    return count
  }

  posted(lengthMax: number): Uint8Array | undefined {
    return this.#receiver.room(lengthMax)
  }

  handlePosted(length: number): void {
    this.#receiver.advance(length)
    this.#placed = (this.#placed + 1) | 0
    this.#noteReceived()
  }

  handleArrival(): void {
    this.#noteReceived()
  }

  override handleEnd(): void {
    if (this.#receiver.isWithin) {
      return this.failReceives(systemError('ECONNRESET', 'read', new Error(END_WITHIN)))
    }
    for (const operation of this.#receives.waiting) operation.done = END
    super.handleEnd()
  }

  override handleWritten(): void {
    super.handleWritten()
    if (!this.isSending()) this.#receiver.keepFrom = this.#keepFrom
  }

  protected write(stream: SocketStream, bytes: Uint8Array): boolean {
    if (this.#hasSent && stream.trySendWithHead(bytes.length, bytes)) return true
    return stream.write([this.#head(bytes.length), bytes], true, 0, LENT_MIN)
  }

  #head(length: number): Buffer {
    const isFirst = !this.#hasSent
    this.#hasSent = true
    return encodeHead(length, isFirst)
  }

  #tryOnce(bytes: Uint8Array): boolean {
    const stream = this.stream()
    const { length } = bytes
    if (this.#hasSent && stream.trySendWithHead(length, bytes)) return true
    // Sends what there is room for, and keeps a copy of the rest.
    const roomMin = Math.min(PREAMBLE_SIZE + HEAD_SIZE + length, EAGER_MAX)
    if ((this.#hasSent && length < PARTS_MIN) || stream.unsentLength > 0 || stream.windowLeft < roomMin)
      return false
    if (!stream.write([this.#head(length), bytes], true)) this.hold()
    return true
  }

  /**
   * A send waits, perhaps for a peer whose own send waits: takes in what the peer sends, so that not both wait for ever
   * (the deadlock of EMP 2002, section 5.2).
   */
  #keepWhileSending(): void {
    if (this.#receiver.keepFrom === 0) return
    this.#receiver.keepFrom = 0
    this.stream().startReading()
  }

  /** A program that asks by `tryRecv`, or a queue, posts no receive for messages that exceed the window. */
  #keepLong(): void {
    if (this.#keepFrom === EAGER_MAX + 1) return
    this.#keepFrom = EAGER_MAX + 1
    if (this.#receiver.keepFrom > this.#keepFrom) this.#receiver.keepFrom = this.#keepFrom
    this.stream().startReading()
  }

  #poll(): void {
    const stream = this.stream()
    const receiver = this.#receiver
    if (stream.isReadable) stream.deliver()
    // One message of the channel at a time: further ones wait in the ring, where they cost nothing.
    for (let empty = 0; receiver.taken < 0; ) {
      const before = this.#placed
      stream.channel.pollNow(1)
      if (this.#placed !== before) empty = 0
      else if (!receiver.isWithin || ++empty > REST_POLLS || !stream.channel.isOpen) return
    }
  }

  #hasMessage(): boolean {
    return this.#receiver.isReady(this.stream().waitingLength)
  }

  #noteReceived(): void {
    const { fault } = this.#receiver
    if (fault !== undefined && !this.hasEnding())
      this.failReceives(systemError('EPROTO', 'read', new Error(fault)))
    this.updateLife()
    this.notifyQueue()
  }
}
