import type { FastTransport, Transport } from '../handle/transport.ts'
import { type SystemError, systemError } from '../host/socket-errors.ts'
import type { SocketChannel, SocketStream } from '../stream/socket-channel.ts'
import type { StreamAddresses } from '../stream/stream-addresses.ts'
import type { StreamErrorCode, StreamSink } from '../stream/stream-sink.ts'
import { Operations } from './operations.ts'
import {
  assertBytes,
  forgiveGetters,
  OPERATIONS_MAX,
  type Pollable,
  type ReadinessQueue,
} from './raw-socket.ts'

export type ConnectAnswer = (refusal: number | undefined, isConnected: boolean) => void

/**
 * What both types of raw sockets do over a channel: connecting, sends that wait, closing, and readiness. Its sink methods
 * run no user code: promises settle after the turn.
 */
export abstract class FastEnd implements Pollable, StreamSink {
  static {
    forgiveGetters(FastEnd.prototype, object => #sends in object)
  }

  /** Set by `adopt` or `open`, before anything else. */
  #stream!: SocketStream
  #onAnswer: ConnectAnswer | undefined
  readonly #sends = new Operations()
  readonly #receives: Operations
  /** The stream completes a write that no send waits for. */
  #isHolding = false
  #queue: ReadinessQueue | undefined
  #state: 'open' | 'shutdown' | 'closed' = 'open'
  #hasEnded = false
  #failure: SystemError | undefined
  #isAwaited = false
  #countsAsAlive = false

  /** `receives`: where the subclass keeps the receives that wait. */
  constructor(receives: Operations) {
    this.#receives = receives
  }

  abstract readonly isReading: boolean
  abstract readonly isReadable: boolean
  abstract place(bytes: Uint8Array, offset: number, length: number): number
  abstract posted(lengthMax: number): Uint8Array | undefined
  abstract handlePosted(length: number): void
  abstract handleArrival(): void

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
    this.updateLife()
    return true
  }

  polledChannel(): SocketChannel {
    return this.#stream.channel
  }

  get transport(): Transport {
    const { channel, counts } = this.#stream
    return {
      transport: channel.transport as FastTransport['transport'],
      bytesIn: counts.bytesIn,
      bytesOut: counts.bytesOut,
      counts: counts.snapshot(),
    }
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  send(bytes: Uint8Array): Promise<number> {
    const { waiting } = this.#sends
    const stream = this.#stream
    const isRight = bytes instanceof Uint8Array && waiting.length < OPERATIONS_MAX
    if (!isRight || this.#state !== 'open' || this.#failure !== undefined || stream.refusesWrites)
      return this.#refuseSend(bytes)
    if (waiting.length === 0 && !this.#isHolding && this.write(stream, bytes))
      return Promise.resolve(bytes.length)
    const sent = this.#sends.add(bytes)
    this.updateLife()
    return sent
  }

  shutdown(): void {
    if (this.#state !== 'open') return
    this.#state = 'shutdown'
    if (!this.isSending()) this.#stream.shutdown()
  }

  close(isReset = false): void {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#stream.close(isReset)
    this.#sends.failAll(systemError('ECANCELED', 'write'))
    this.#receives.failAll(systemError('ECANCELED', 'read'))
    this.#answer(undefined, false)
    this.updateLife()
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
    if (!this.#stream.channel.isOpen) this.notifyQueue()
  }

  watch(queue: ReadinessQueue | undefined): void {
    this.#queue = queue
    this.notifyQueue()
  }

  setAwaited(isAwaited: boolean): void {
    this.#isAwaited = isAwaited
    this.updateLife()
  }

  // The other methods of `StreamSink`.

  /** Only bytes that `place` left, in the stream's buffer, arrive here. */
  handleData(bytes: Buffer): number {
    return this.place(bytes, 0, bytes.length)
  }

  handleEnd(): void {
    this.#hasEnded = true
    this.#receives.finishAll()
    this.updateLife()
  }

  handleWritten(): void {
    if (this.#isHolding) this.#isHolding = false
    else {
      const first = this.#sends.waiting[0]
      if (first === undefined) return
      first.done = first.length
      this.#sends.finishFirst()
    }
    for (let next = this.#sends.waiting[0]; next !== undefined; next = this.#sends.waiting[0]) {
      if (!this.write(this.#stream, next.bytes)) return
      next.done = next.length
      this.#sends.finishFirst()
    }
    if (this.#state === 'shutdown') this.#stream.shutdown()
    this.updateLife()
  }

  handleSent(): void {}

  handleShutdown(): void {}

  handleWriteFailed(code: StreamErrorCode): void {
    this.#sends.failAll(systemError(code, 'write'))
    this.updateLife()
  }

  handleError(code: StreamErrorCode, _syscall: string, cause: Error | undefined): void {
    this.#sends.failAll(systemError(code, 'write', cause))
    if (code === 'EPIPE') return this.handleEnd()
    this.failReceives(systemError(code, 'read', cause))
  }

  handleConnected(): void {
    this.#answer(undefined, true)
  }

  handleRefused(refusal: number | undefined): void {
    this.#answer(refusal, false)
  }

  // For the two types.

  /** Writes what a send sends; false if `handleWritten` will follow. */
  protected abstract write(stream: SocketStream, bytes: Uint8Array): boolean

  protected stream(): SocketStream {
    return this.#stream
  }

  /** A send waits, or a write that is held. */
  protected isSending(): boolean {
    return this.#isHolding || this.#sends.waiting.length > 0
  }

  protected isQueued(): boolean {
    return this.#queue !== undefined
  }

  protected hasEnding(): boolean {
    return this.#hasEnded || this.#failure !== undefined
  }

  /** The stream completes a write later that no send waits for: the program was told that it is sent. */
  protected hold(): void {
    this.#isHolding = true
    this.#stream.promisePending()
  }

  protected failReceives(failure: SystemError): void {
    this.#failure = failure
    this.#receives.failAll(failure)
    this.updateLife()
  }

  /** `ended` at the end of the stream, undefined before it. Throws what the stream has failed with. */
  protected ending(ended: number): number | undefined {
    if (this.#failure !== undefined) throw this.#failure
    return this.#hasEnded ? ended : undefined
  }

  protected notifyQueue(): void {
    if (this.#queue !== undefined && this.isReadable) this.#queue.handleReadable(this)
  }

  protected assertOpen(syscall: 'read' | 'write'): void {
    if (this.#state === 'closed') throw systemError('EBADF', syscall)
  }

  protected assertMaySend(bytes: Uint8Array): void {
    assertBytes(bytes)
    this.assertOpen('write')
    const failure = this.#failure
    if (failure !== undefined) throw systemError(failure.code as StreamErrorCode, 'write', failure)
    if (this.#state === 'shutdown' || this.#stream.refusesWrites) throw systemError('EPIPE', 'write')
  }

  /** Operations that wait keep the program alive, as those of a `net.Socket` do. */
  protected updateLife(): void {
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

  #refuseSend(bytes: Uint8Array): Promise<never> {
    try {
      this.assertMaySend(bytes)
      throw systemError('ENOBUFS', 'write')
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #answer(refusal: number | undefined, isConnected: boolean): void {
    const onAnswer = this.#onAnswer
    this.#onAnswer = undefined
    this.updateLife()
    onAnswer?.(refusal, isConnected)
  }
}
