import { copyBytes } from '../../nic/index.ts'
import { systemError } from '../host/socket-errors.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import { FastEnd } from './fast-end.ts'
import { Operations } from './operations.ts'
import { assertReceiveBuffer, forgiveGetters, OPERATIONS_MAX, type RawSocket } from './raw-socket.ts'

const NO_BYTES = new Uint8Array(0)
/** The most messages that a refused `trySend` polls for credit. */
const CREDIT_POLL_MESSAGES = 16

/** A raw socket over a channel. */
export class FastRawSocket extends FastEnd implements RawSocket {
  static {
    forgiveGetters(FastRawSocket.prototype, object => #into in object)
  }

  readonly #receives: Operations
  /** The buffer of the `tryRecv` that is running, else empty. */
  #into: Uint8Array = NO_BYTES
  #filled = 0

  constructor() {
    const receives = new Operations()
    super(receives)
    this.#receives = receives
  }

  get isReadable(): boolean {
    return this.hasEnding() || this.stream().isReadable
  }

  trySend(bytes: Uint8Array): number {
    this.assertMaySend(bytes)
    if (this.isSending()) return 0
    const stream = this.stream()
    const sent = stream.trySend(bytes)
    if (sent > 0 || bytes.length === 0) return sent
    // Credit arrives through the ring, and a program that polls may not let the event loop run: poll here.
    stream.channel.pollNow(CREDIT_POLL_MESSAGES)
    return stream.refusesWrites ? 0 : stream.trySend(bytes)
  }

  recv(into: Uint8Array): Promise<number> {
    const receives = this.#receives
    const stream = this.stream()
    // Usually nothing has come: no bytes, no end, no error.
    const isIdle = stream.sink === this && !stream.isReadable
    const isRight = into instanceof Uint8Array && into.length > 0
    if (!isIdle || !isRight || receives.waiting.length >= OPERATIONS_MAX) {
      const received = this.#recvNow(into)
      if (received !== undefined) return received
    }
    const received = receives.add(into)
    if (!isIdle) stream.startReading()
    // The peer may then write into it directly.
    else if (receives.waiting.length === 1) stream.postReceive(into)
    this.updateLife()
    return received
  }

  tryRecv(into: Uint8Array): number | undefined {
    assertReceiveBuffer(into)
    this.assertOpen('read')
    if (this.#receives.waiting.length > 0) return undefined
    const count = this.#read(into)
    if (count !== undefined) return count
    const stream = this.stream()
    this.#into = into
    this.#filled = 0
    try {
      // One message at a time: bytes beyond `into` would take the slower path through the receive buffer. Stops at a
      // message that is not ours: peers that keep the channel busy must not keep us here.
      let before = -1
      while (this.#filled > before && this.#filled < into.length) {
        before = this.#filled
        stream.channel.pollNow(1)
      }
      if (this.#filled > 0) return this.#filled
      if (stream.isReadable) stream.deliver()
    } finally {
      this.#into = NO_BYTES
    }
    return this.ending(0)
  }

  // The methods of `StreamSink`.

  get isReading(): boolean {
    return this.#receives.waiting.length > 0 || this.#filled < this.#into.length
  }

  place(bytes: Uint8Array, offset: number, length: number): number {
    const into = this.#into
    if (into.length > 0) {
      const count = Math.min(length, into.length - this.#filled)
      copyBytes(bytes, offset, into, this.#filled, count)
      this.#filled += count
      return count
    }
    const receives = this.#receives
    let placed = 0
    let isBegun = false
    while (placed < length) {
      const first = receives.firstFillable
      if (first === undefined) break
      const count = Math.min(length - placed, first.length - first.done)
      copyBytes(bytes, offset + placed, first.bytes, first.done, count)
      isBegun ||= first.done === 0
      first.done += count
      placed += count
      if (first.done === first.length) receives.finishFirst()
    }
    if (receives.waiting.length === 0) this.updateLife()
    // A receive that is not full settles at the end of the turn, since more bytes may follow at once; the next is posted.
    else if (isBegun) this.polledChannel().deliveries.schedule(this.stream())
    return placed
  }

  posted(lengthMax: number): Uint8Array | undefined {
    const into = this.#into
    if (into.length > 0) return into.subarray(this.#filled, this.#filled + lengthMax)
    const first = this.#receives.firstFillable
    return first?.bytes.subarray(first.done, Math.min(first.length, first.done + lengthMax))
  }

  handlePosted(length: number): void {
    if (this.#into.length > 0) {
      this.#filled += length
      return
    }
    const first = this.#receives.waiting[0]
    if (first === undefined) return
    first.done += length
    if (first.done === first.length) this.#finishReceive()
  }

  handleArrival(): void {
    const first = this.#receives.waiting[0]
    if (first !== undefined && first.done > 0) this.#finishReceive()
    this.#postReceive()
    this.notifyQueue()
  }

  protected write(stream: SocketStream, bytes: Uint8Array): boolean {
    return stream.sendWhole(bytes) || stream.write([bytes])
  }

  /**
   * Offers the first buffer to the peer, which may then write into it directly. Only between messages: the rest of a
   * message that is being placed goes to the same buffer.
   */
  #postReceive(): void {
    const first = this.#receives.firstFillable
    const stream = this.stream()
    if (first !== undefined && first.done === 0 && !this.isClosed && !stream.isReadable)
      stream.postReceive(first.bytes)
  }

  /** For a receive that is not simply posted: bytes or an end that are here, or a refusal; undefined if it waits. */
  #recvNow(into: Uint8Array): Promise<number> | undefined {
    const { waiting } = this.#receives
    try {
      assertReceiveBuffer(into)
      this.assertOpen('read')
      if (waiting.length >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'read')
      const count = waiting.length === 0 ? this.#read(into) : undefined
      return count === undefined ? undefined : Promise.resolve(count)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #finishReceive(): void {
    this.#receives.finishFirst()
    this.updateLife()
  }

  /** Reads from the receive buffer, or reports how the stream has ended; undefined if neither. */
  #read(into: Uint8Array): number | undefined {
    const count = this.stream().readInto(into)
    return count > 0 ? count : this.ending(0)
  }
}
