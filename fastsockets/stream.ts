/**
 * One byte stream each way between two sockets: sequence numbers, byte credits, half-close, reset. It knows nothing of
 * `net.Socket`; a `StreamSink` does, and a `SocketChannel` carries the messages (stream-layout.ts).
 *
 * Sending has no buffer: a write goes out at once, and what finds no credit or room stays where the caller has it.
 * Receiving has one, used only when the sink does not read: otherwise data goes straight on (receive posting).
 */
import { copyBytes } from '../nic/index.ts'
import { PendingChunks } from './pending-chunks.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import type { SocketChannel } from './socket-channel.ts'
import { codeOfEnd } from './socket-errors.ts'
import { StreamCounts } from './status/stream-counts.ts'
import type { StreamAddresses } from './stream-addresses.ts'
import { CLOSE_DONE, CLOSE_RESET, WINDOW } from './stream-layout.ts'
import type { StreamErrorCode, StreamSink } from './stream-sink.ts'

export type { StreamErrorCode, StreamSink } from './stream-sink.ts'

type State = 'connecting' | 'open' | 'closing' | 'closed'
type SendState = 'open' | 'finWanted' | 'finSent'
type ReceiveState = 'open' | 'finReceived' | 'ended'

/** Half a window: rarely enough to cost nothing, early enough that the sender does not run dry. */
const CONSUMED_DUE = WINDOW / 2

export class Stream {
  readonly channel: SocketChannel
  readonly id: number
  readonly role: 'client' | 'server'
  peerId = -1
  sink: StreamSink | undefined
  addresses: StreamAddresses | undefined
  /** Called once, when this side has closed or the channel is gone. */
  onClosed: (() => void) | undefined
  readonly counts = new StreamCounts()
  /** The channel's: posted pieces that were not handed over yet. */
  postedCount = 0
  state: State = 'connecting'

  #sendState: SendState = 'open'
  /** Sequence of the next byte to send, and the first that may not be sent yet. */
  #sendSequence = 0
  #sendLimit = 0
  #peerConsumed = 0
  readonly pending = new PendingChunks()

  #receiveState: ReceiveState = 'open'
  #receiveSequence = 0
  #consumed = 0
  #consumedSent = 0
  readonly #buffer = new ReceiveBuffer(WINDOW)
  /** What ends the stream once everything received has been delivered. */
  #failure: { code: StreamErrorCode; syscall: 'read' | 'write'; cause: Error | undefined } | undefined
  /** Data was handed over, and `deliver` has not run since. */
  #hasJustDelivered = false
  #peerClosed = false
  #closeHow = CLOSE_DONE
  #closeOwed = false

  constructor(channel: SocketChannel, id: number, role: 'client' | 'server') {
    this.channel = channel
    this.id = id
    this.role = role
  }

  // Commands from the sink.

  /** True if all of it is out; otherwise the chunks must stay as they are until `handleWritten`. */
  write(chunks: readonly Uint8Array[]): boolean {
    this.pending.set(chunks)
    return this.sendPending()
  }

  /** Sends what finds credit and room now, and keeps nothing of it; returns how much. Nothing may be pending. */
  trySend(bytes: Uint8Array): number {
    let sent = 0
    while (sent < bytes.length) {
      const length = this.#sendPart(bytes, sent)
      if (length <= 0) break
      sent += length
    }
    return sent
  }

  /** Takes what waits in the receive buffer into `target`; returns how much. */
  takeInto(target: Uint8Array): number {
    const taken = this.#buffer.takeInto(target)
    if (taken > 0) this.#consume(taken)
    return taken
  }

  /** Something waits: data, the end, or an error. */
  get isReadable(): boolean {
    return this.#buffer.length > 0 || this.#receiveState !== 'open' || this.#failure !== undefined
  }

  /** Bytes that were received and not taken yet; they are the part of the window that is shut. */
  get waitingLength(): number {
    return this.#buffer.length
  }

  /** Bytes that may be sent before the peer's program takes any. */
  get creditLeft(): number {
    return (this.#sendLimit - this.#sendSequence) | 0
  }

  /** Whether a write can only fail, as after shutdown(2) or when the peer is gone. */
  get refusesWrites(): boolean {
    return this.#sendState !== 'open' || this.#isBroken
  }

  /** True if FIN is out already. */
  shutdown(): boolean {
    if (this.refusesWrites) return true
    this.#sendState = 'finWanted'
    return this.#sendFin()
  }

  /** Deliver what waits; later, not within the caller's own stack. */
  startReading(): void {
    if (this.#buffer.length > 0 || this.#receiveState === 'finReceived' || this.#failure !== undefined) {
      this.channel.scheduleDelivery(this)
    }
  }

  /** Like close(2): no more calls to the sink. Unread bytes make it a reset, as in TCP. */
  close(reset: boolean): void {
    if (this.state === 'closing' || this.state === 'closed') return
    const wasConnecting = this.state === 'connecting'
    if (reset || this.#buffer.length > 0 || this.postedCount > 0) this.#closeHow = CLOSE_RESET
    this.#release()
    this.sink = undefined
    this.pending.clear()
    this.#buffer.clear()
    this.state = 'closing'
    if (!this.channel.isOpen) return this.#finish()
    // A connecting stream has no peer to close yet: the answer to CONNECT will find it closing.
    if (wasConnecting) return
    this.#sendClose()
    if (this.#peerClosed && !this.#closeOwed) this.#finish()
  }

  // What the channel has received.

  handleAccepted(peerId: number, window: number): void {
    this.peerId = peerId
    this.#sendLimit = window
    if (this.state === 'closing') {
      this.#sendClose()
      return
    }
    this.state = 'open'
    this.channel.show(this, window)
    this.sink?.handleConnected()
  }

  handleRefused(refusal: number | undefined): void {
    const { sink } = this
    this.#finish()
    sink?.handleRefused(refusal)
  }

  /** Data for this stream; returns what is wrong with it, if anything. */
  handleData(
    sequence: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    fin: boolean,
  ): string | undefined {
    if (sequence !== this.#receiveSequence)
      return `sequence ${sequence >>> 0} where ${this.#receiveSequence >>> 0} was due`
    if (((sequence + length - this.#consumed) | 0) > WINDOW) return `${length} bytes beyond the window`
    if (this.#receiveState !== 'open') return 'data after the end'
    this.#receiveSequence = (sequence + length) | 0
    if (this.state === 'closing') {
      // As TCP does: data for somebody who has closed is answered by a reset. A bare FIN is not data.
      if (length > 0) {
        this.#closeHow = CLOSE_RESET
        this.#sendClose()
      }
      return undefined
    }
    this.counts.received(length)
    const placed = this.#place(bytes, offset, length)
    if (placed < length) this.#keep(bytes, offset + placed, length - placed)
    if (fin) {
      this.#receiveState = 'finReceived'
      this.channel.scheduleDelivery(this)
    }
    return undefined
  }

  /** Straight from the ring into the buffers that a raw socket has posted; what was there before comes first. */
  #place(bytes: Uint8Array, offset: number, length: number): number {
    const { sink } = this
    if (sink?.place === undefined || length === 0 || this.#buffer.length > 0) return 0
    const placed = sink.place(bytes, offset, length)
    if (placed > 0) this.#consume(placed)
    return placed
  }

  #keep(bytes: Uint8Array, offset: number, length: number): void {
    // Behind posted bytes that are still on their way, everything else must queue, too.
    if (this.postedCount > 0 || this.#isPosted()) {
      this.channel.post(this, bytes, offset, length)
      return
    }
    this.#buffer.append(bytes, offset, length)
    this.counts.buffered(length)
    this.sink?.handleArrival?.()
  }

  /** The peer's program has taken bytes; returns what is wrong with the claim, if anything. */
  handleConsumed(consumed: number): string | undefined {
    const progress = (consumed - this.#peerConsumed) | 0
    if (progress === 0) return undefined
    if (progress < 0 || progress > ((this.#sendSequence - this.#peerConsumed) | 0)) {
      return `${consumed >>> 0} bytes consumed of ${this.#sendSequence >>> 0} sent`
    }
    this.#peerConsumed = consumed
    this.counts.takenByPeer(progress)
    this.#sendLimit = (this.#sendLimit + progress) | 0
    if (this.pending.isWaiting) this.channel.scheduleSend(this)
    return undefined
  }

  handleClosed(how: number): void {
    this.#peerClosed = true
    if (this.state === 'closing' && !this.#closeOwed) return this.#finish()
    if (this.state !== 'open') return
    if (this.#receiveState === 'open') {
      if (how === CLOSE_RESET) this.#fail('ECONNRESET', 'read', undefined)
      else if (this.pending.isWaiting) this.#fail('ECONNRESET', 'write', undefined)
      else this.#receiveState = 'finReceived'
    } else if (this.pending.isWaiting) {
      // The end had come before the reset: reading ends well all the same, as in TCP.
      this.#fail('EPIPE', 'write', undefined)
    }
    this.channel.scheduleDelivery(this)
  }

  /** The channel is no more: the peer died, or broke the protocol (`cause`). */
  handleChannelGone(cause: Error | undefined): void {
    this.#peerClosed = true
    if (this.state === 'connecting') return this.handleRefused(undefined)
    if (this.state === 'closing') return this.#finish()
    if (cause !== undefined) this.#fail(codeOfEnd(cause), 'read', cause)
    else if (this.pending.isWaiting) this.#fail('ECONNRESET', 'write', undefined)
    else if (this.#receiveState === 'open') this.#receiveState = 'finReceived'
    this.channel.scheduleDelivery(this)
  }

  // Called by the channel when there may be room or credit again.

  /** Sends what is pending as far as it goes, many small chunks in one message; true if nothing is left. */
  sendPending(): boolean {
    const pending = this.pending
    while (pending.length > 0) {
      const length = Math.min(pending.length, this.channel.segmentMax, this.creditLeft)
      if (length <= 0) return false
      const at = this.#reserve(length)
      if (at < 0) {
        this.channel.scheduleSend(this)
        return false
      }
      pending.copyTo(this.channel.channel.sendBytes, at, length)
      this.#commit(length)
    }
    pending.clear()
    return true
  }

  /** One message of `chunk`, from `offset` on; returns its length, 0 if the window is shut, -1 if there is no room. */
  #sendPart(chunk: Uint8Array, offset: number): number {
    const length = Math.min(chunk.length - offset, this.channel.segmentMax, this.creditLeft)
    if (length <= 0) return 0
    const at = this.#reserve(length)
    if (at < 0) return -1
    copyBytes(chunk, offset, this.channel.channel.sendBytes, at, length)
    this.#commit(length)
    return length
  }

  #reserve(length: number): number {
    return this.channel.reserveData(this, this.#sendSequence, this.#consumed, length, 0)
  }

  #commit(length: number): void {
    this.channel.channel.commit(length)
    this.#consumedSent = this.#consumed
    this.#sendSequence = (this.#sendSequence + length) | 0
    this.counts.sent(length)
  }

  /** Everything that was refused before, in order; false if it is refused again. */
  resume(): boolean {
    if (this.pending.isWaiting) {
      const before = this.#sendSequence
      const isOut = this.sendPending()
      if (isOut) this.sink?.handleWritten()
      else if (this.#sendSequence !== before) this.sink?.handleSent()
      // With its own window shut this stream can still say what it has consumed; the peer may wait for just that.
      if (!isOut && !this.#windowIsShut()) return false
    }
    if (this.#sendState === 'finWanted' && !this.pending.isWaiting) {
      if (!this.#sendFin()) return false
      this.sink?.handleShutdown()
    }
    if (this.#consumedIsDue() && !this.#sendConsumed()) return false
    if (this.#closeOwed) {
      this.#sendClose()
      if (this.#closeOwed) return false
      if (this.#peerClosed) this.#finish()
    }
    return true
  }

  /**
   * Hands over what waits while the sink reads. The end, or an error, comes a turn after the last data, as it does with
   * TCP, where it takes another read: a program that has all it wants may close the socket first.
   */
  deliver(): void {
    while (this.#buffer.length > 0 && this.sink?.isReading) {
      const bytes = this.#buffer.take()
      this.#handOver(bytes)
    }
    if (this.sink === undefined) return
    if (this.#failure?.syscall === 'write') this.sink.handleWriteFailed?.(this.#failure.code)
    this.sink.handleArrival?.()
    if (this.#buffer.length > 0) return
    if (this.#hasJustDelivered) {
      this.#hasJustDelivered = false
      if (this.#failure !== undefined || this.#receiveState === 'finReceived')
        this.channel.scheduleDelivery(this)
      return
    }
    if (this.#failure !== undefined) {
      const { code, syscall, cause } = this.#failure
      this.#failure = undefined
      this.#receiveState = 'ended'
      this.sink.handleError(code, syscall, cause)
    } else if (this.#receiveState === 'finReceived' && this.sink.isReading) {
      this.#receiveState = 'ended'
      this.sink.handleEnd()
    }
  }

  /** What is left to hand over has the next turn, after the data of this one. */
  endTurn(): void {
    this.#hasJustDelivered = false
  }

  /** Bytes that were posted, now in memory of their own. */
  deliverPosted(bytes: Buffer): void {
    if (!this.#isPosted()) {
      if (this.state !== 'open') return
      this.#buffer.append(bytes, 0, bytes.length)
      this.counts.buffered(bytes.length)
      return
    }
    this.#handOver(bytes)
  }

  #handOver(bytes: Buffer): void {
    const { sink } = this
    if (sink === undefined) return
    this.#hasJustDelivered = true
    // A listener that throws has had the bytes all the same.
    let taken = bytes.length
    try {
      taken = sink.handleData(bytes)
    } finally {
      // The sink may have closed meanwhile; then nobody wants the rest either.
      if (taken < bytes.length && this.sink !== undefined) {
        this.#buffer.append(bytes, taken, bytes.length - taken)
        this.counts.buffered(bytes.length - taken)
      }
      this.#consume(taken)
    }
  }

  #consume(taken: number): void {
    this.#consumed = (this.#consumed + taken) | 0
    this.counts.taken(taken)
    if (this.#consumedIsDue() && !this.#sendConsumed()) this.channel.scheduleSend(this)
  }

  get #isBroken(): boolean {
    return this.#peerClosed || this.state !== 'open' || !this.channel.isOpen
  }

  #isPosted(): boolean {
    return this.#buffer.length === 0 && this.sink !== undefined && this.sink.isReading
  }

  #consumedIsDue(): boolean {
    return (
      this.state === 'open' &&
      !this.#peerClosed &&
      ((this.#consumed - this.#consumedSent) | 0) >= CONSUMED_DUE
    )
  }

  #sendConsumed(): boolean {
    if (!this.channel.sendConsumed(this, this.#consumed)) return false
    this.#consumedSent = this.#consumed
    return true
  }

  #windowIsShut(): boolean {
    return this.creditLeft <= 0
  }

  #sendFin(): boolean {
    if (this.pending.isWaiting) return false
    if (!this.channel.sendFin(this, this.#sendSequence, this.#consumed)) {
      this.channel.scheduleSend(this)
      return false
    }
    this.#consumedSent = this.#consumed
    this.#sendState = 'finSent'
    return true
  }

  #sendClose(): void {
    this.#closeOwed = !this.channel.sendClose(this, this.#closeHow)
    if (this.#closeOwed) this.channel.scheduleSend(this)
  }

  #fail(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
    this.#failure ??= { code, syscall, cause }
  }

  #release(): void {
    this.onClosed?.()
    this.onClosed = undefined
    this.channel.hide(this)
  }

  #finish(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.#release()
    this.sink = undefined
    this.pending.clear()
    this.channel.forget(this)
  }
}
