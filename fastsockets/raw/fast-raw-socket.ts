import { copyBytes } from '../../nic/index.ts'
import type { Transport } from '../handle/transport.ts'
import { type SystemError, systemError } from '../host/socket-errors.ts'
import type { SocketChannel, SocketStream } from '../stream/socket-channel.ts'
import type { StreamAddresses } from '../stream/stream-addresses.ts'
import type { StreamErrorCode, StreamSink } from '../stream/stream-sink.ts'
import { Operations } from './operations.ts'
import {
  assertBytes,
  assertReceiveBuffer,
  forgiveGetters,
  OPERATIONS_MAX,
  type Pollable,
  type RawSocket,
  type ReadinessQueue,
} from './raw-socket.ts'

const NO_BYTES = new Uint8Array(0)
/** The most messages that a refused `trySend` polls for credit. */
const CREDIT_POLL_MESSAGES = 16

export type ConnectAnswer = (refusal: number | undefined, isConnected: boolean) => void

/** A raw socket over a channel. Its sink methods run no user code: promises settle after the turn. */
export class FastRawSocket implements RawSocket, Pollable, StreamSink {
  static {
    forgiveGetters(FastRawSocket.prototype, object => #stream in object)
  }

  /** Set by `adopt` or `open`, before anything else. */
  #stream!: SocketStream
  #onAnswer: ConnectAnswer | undefined
  readonly #sends = new Operations()
  readonly #receives = new Operations()
  /** The buffer of the `tryRecv` that is running, else empty. */
  #into: Uint8Array = NO_BYTES
  #filled = 0
  #queue: ReadinessQueue | undefined
  #state: 'open' | 'shutdown' | 'closed' = 'open'
  #hasEnded = false
  #failure: SystemError | undefined
  #isAwaited = false
  #countsAsAlive = false

  /** Takes over the stream, on the accepting side. */
  adopt(stream: SocketStream): void {
    this.#stream = stream
    stream.sink = this
  }

  /** On the connecting side: sends a CONNECT over `channel`; false if the channel has no room for one more socket. */
  open(channel: SocketChannel, addresses: StreamAddresses, onAnswer: ConnectAnswer): boolean {
    const { serverPort, address, family } = addresses
    const stream = channel.connect(this, serverPort, address, family === 'IPv6' ? 6 : 4)
    if (stream === undefined) return false
    this.#stream = stream
    this.#stream.addresses = addresses
    this.#onAnswer = onAnswer
    this.#updateLife()
    return true
  }

  polledChannel(): SocketChannel {
    return this.#stream.channel
  }

  get transport(): Transport {
    const { channel, counts } = this.#stream
    return {
      transport: channel.transport,
      bytesIn: counts.bytesIn,
      bytesOut: counts.bytesOut,
      counts: counts.snapshot(),
    }
  }

  get isReadable(): boolean {
    return this.#hasEnded || this.#failure !== undefined || this.#stream.isReadable
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  send(bytes: Uint8Array): Promise<number> {
    try {
      assertBytes(bytes)
      this.#assertMaySend()
      if (this.#sends.waiting.length >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'write')
    } catch (error) {
      return Promise.reject(error)
    }
    const isAlone = this.#sends.waiting.length === 0
    if (isAlone && this.#stream.write([bytes])) return Promise.resolve(bytes.length)
    const sent = this.#sends.add(bytes)
    this.#updateLife()
    return sent
  }

  trySend(bytes: Uint8Array): number {
    assertBytes(bytes)
    this.#assertMaySend()
    if (this.#sends.waiting.length > 0) return 0
    const stream = this.#stream
    const sent = stream.trySend(bytes)
    if (sent > 0 || bytes.length === 0) return sent
    // Credit arrives through the ring, and a program that polls may not let the event loop run: poll here.
    stream.channel.pollNow(CREDIT_POLL_MESSAGES)
    return stream.refusesWrites ? 0 : stream.trySend(bytes)
  }

  recv(into: Uint8Array): Promise<number> {
    try {
      assertReceiveBuffer(into)
      this.#assertOpen('read')
      if (this.#receives.waiting.length >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'read')
      if (this.#receives.waiting.length === 0) {
        const count = this.#read(into)
        if (count !== undefined) return Promise.resolve(count)
      }
    } catch (error) {
      return Promise.reject(error)
    }
    const received = this.#receives.add(into)
    this.#stream.startReading()
    this.#postReceive()
    this.#updateLife()
    return received
  }

  tryRecv(into: Uint8Array): number | undefined {
    assertReceiveBuffer(into)
    this.#assertOpen('read')
    if (this.#receives.waiting.length > 0) return undefined
    const count = this.#read(into)
    if (count !== undefined) return count
    const stream = this.#stream
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
    return this.#ending()
  }

  shutdown(): void {
    if (this.#state !== 'open') return
    this.#state = 'shutdown'
    if (this.#sends.waiting.length === 0) this.#stream.shutdown()
  }

  close(isReset = false): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#stream.close(isReset)
    this.#sends.failAll(systemError('ECANCELED', 'write'))
    this.#receives.failAll(systemError('ECANCELED', 'read'))
    this.#answer(undefined, false)
    this.#updateLife()
    this.#queue?.remove(this)
  }

  reset(): void {
    this.close(true)
  }

  /**
   * The queue polls the channel instead. But a closed channel has no turns in a program that only polls: report its end
   * here.
   */
  look(): void {
    if (!this.#stream.channel.isOpen && this.isReadable) this.#queue?.handleReadable(this)
  }

  watch(queue: ReadinessQueue | undefined): void {
    this.#queue = queue
    if (queue !== undefined && this.isReadable) queue.handleReadable(this)
  }

  setAwaited(isAwaited: boolean): void {
    this.#isAwaited = isAwaited
    this.#updateLife()
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
    return this.#receives.waiting.length === 0 ? 0 : this.#fillPosted(bytes, offset, length)
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

  /** A new receive reads the receive buffer at once: only bytes that `place` left arrive here. */
  handleData(bytes: Buffer): number {
    return this.place(bytes, 0, bytes.length)
  }

  handleArrival(): void {
    const first = this.#receives.waiting[0]
    if (first !== undefined && first.done > 0) this.#finishReceive()
    this.#postReceive()
    if (this.#queue !== undefined && this.isReadable) this.#queue.handleReadable(this)
  }

  handleEnd(): void {
    this.#hasEnded = true
    this.#receives.finishAll()
    this.#updateLife()
  }

  handleWritten(): void {
    const first = this.#sends.waiting[0]
    if (first === undefined) return
    first.done = first.length
    this.#sends.finishFirst()
    for (let next = this.#sends.waiting[0]; next !== undefined; next = this.#sends.waiting[0]) {
      if (!this.#stream.write([next.bytes])) return
      next.done = next.length
      this.#sends.finishFirst()
    }
    if (this.#state === 'shutdown') this.#stream.shutdown()
    this.#updateLife()
  }

  handleSent(): void {}

  handleShutdown(): void {}

  handleWriteFailed(code: StreamErrorCode): void {
    this.#sends.failAll(systemError(code, 'write'))
    this.#updateLife()
  }

  handleError(code: StreamErrorCode, _syscall: string, cause: Error | undefined): void {
    this.#sends.failAll(systemError(code, 'write', cause))
    if (code === 'EPIPE') return this.handleEnd()
    this.#failure = systemError(code, 'read', cause)
    this.#receives.failAll(this.#failure)
    this.#updateLife()
  }

  handleConnected(): void {
    this.#answer(undefined, true)
  }

  handleRefused(refusal: number | undefined): void {
    this.#answer(refusal, false)
  }

  #answer(refusal: number | undefined, isConnected: boolean): void {
    const onAnswer = this.#onAnswer
    this.#onAnswer = undefined
    this.#updateLife()
    onAnswer?.(refusal, isConnected)
  }

  /**
   * Offers the first buffer to the peer, which may then write into it directly. Only between messages: the rest of a
   * message that is being placed goes to the same buffer.
   */
  #postReceive(): void {
    const first = this.#receives.firstFillable
    const stream = this.#stream
    if (first !== undefined && first.done === 0 && this.#state !== 'closed' && !stream.isReadable)
      stream.postReceive(first.bytes)
  }

  #fillPosted(bytes: Uint8Array, offset: number, length: number): number {
    let placed = 0
    for (
      let first = this.#receives.firstFillable;
      first !== undefined && placed < length;
      first = this.#receives.firstFillable
    ) {
      const count = Math.min(length - placed, first.length - first.done)
      copyBytes(bytes, offset + placed, first.bytes, first.done, count)
      // A receive that is not full settles at the end of the turn: more bytes may follow at once.
      if (first.done === 0) this.#stream.channel.deliveries.schedule(this.#stream)
      first.done += count
      placed += count
      if (first.done === first.length) this.#finishReceive()
    }
    return placed
  }

  #finishReceive(): void {
    this.#receives.finishFirst()
    this.#updateLife()
  }

  /** Reads from the receive buffer, or reports how the stream has ended; undefined if neither. */
  #read(into: Uint8Array): number | undefined {
    const count = this.#stream.readInto(into)
    return count > 0 ? count : this.#ending()
  }

  #ending(): number | undefined {
    if (this.#failure !== undefined) throw this.#failure
    return this.#hasEnded ? 0 : undefined
  }

  #assertOpen(syscall: 'read' | 'write'): void {
    if (this.#state === 'closed') throw systemError('EBADF', syscall)
  }

  #assertMaySend(): void {
    this.#assertOpen('write')
    const failure = this.#failure
    if (failure !== undefined) throw systemError(failure.code as StreamErrorCode, 'write', failure)
    if (this.#state === 'shutdown' || this.#stream.refusesWrites) throw systemError('EPIPE', 'write')
  }

  /** Operations that wait keep the program alive, as those of a `net.Socket` do. */
  #updateLife(): void {
    const counts =
      this.#state !== 'closed' &&
      (this.#onAnswer !== undefined ||
        this.#sends.waiting.length > 0 ||
        this.#receives.waiting.length > 0 ||
        this.#isAwaited)
    if (counts === this.#countsAsAlive) return
    this.#countsAsAlive = counts
    if (counts) this.#stream.channel.ref()
    else this.#stream.channel.unref()
  }
}
