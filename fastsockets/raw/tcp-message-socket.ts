import { setImmediate } from '../../nic/real-time.ts'
import type { Transport } from '../handle/transport.ts'
import { systemError } from '../host/socket-errors.ts'
import { EAGER_MAX, encodeHead, HEAD_SIZE, PREAMBLE_SIZE } from './message-layout.ts'
import { END_WITHIN, MessageReceiver } from './message-receiver.ts'
import { assertMessage, END, type MessageSocket } from './message-socket.ts'
import { Operations } from './operations.ts'
import {
  assertBytes,
  forgiveGetters,
  OPERATIONS_MAX,
  type Pollable,
  type ReadinessQueue,
} from './raw-socket.ts'
import type { TcpRawSocket } from './tcp-raw-socket.ts'

const NO_BYTES = new Uint8Array(0)
/** Bytes read at once; an eager message fits, so that it can wait here whole. */
const READ_SIZE = PREAMBLE_SIZE + HEAD_SIZE + EAGER_MAX

/** A message socket over TCP: frames the bytes of a raw socket, which it watches as a completion queue would. */
export class TcpMessageSocket implements MessageSocket, Pollable, ReadinessQueue {
  static {
    forgiveGetters(TcpMessageSocket.prototype, object => #raw in object)
  }

  readonly #raw: TcpRawSocket
  readonly #receives = new Operations()
  readonly #receiver = new MessageReceiver(this.#receives, () => {})
  /** Bytes that were read and have no place yet: `#start … #end`. Allocated with the first. */
  #buffer: Uint8Array = NO_BYTES
  #start = 0
  #end = 0
  #isReading = false
  /** What the kernel has not accepted of the message of a `trySend`. */
  #rest: Uint8Array = NO_BYTES
  #sendCount = 0
  #hasSent = false
  /** `keepFrom` of the receiver while no send waits. */
  #keepFrom = Number.POSITIVE_INFINITY
  #queue: ReadinessQueue | undefined
  #hasEnded = false
  #failure: Error | undefined
  #isAwaited = false

  constructor(raw: TcpRawSocket) {
    this.#raw = raw
    raw.watch(this)
  }

  polledChannel(): undefined {}

  get transport(): Transport {
    return this.#raw.transport
  }

  get isReadable(): boolean {
    return this.#hasEnded || this.#failure !== undefined || this.#hasMessage()
  }

  get isClosed(): boolean {
    return this.#raw.isClosed
  }

  async send(bytes: Uint8Array): Promise<number> {
    assertBytes(bytes)
    assertMessage(bytes)
    if (this.#sendCount >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'write')
    this.#flushLater()
    const head = encodeHead(bytes.length, !this.#hasSent)
    this.#hasSent = true
    this.#sendCount++
    this.#keepWhileSending()
    try {
      return await this.#raw.send(bytes, head)
    } finally {
      this.#sendCount--
      if (this.#sendCount === 0) this.#receiver.keepFrom = this.#keepFrom
    }
  }

  trySend(bytes: Uint8Array): boolean {
    assertBytes(bytes)
    assertMessage(bytes)
    const raw = this.#raw
    // Also says whether the socket may send.
    if (raw.trySend(NO_BYTES) !== 0 || this.#sendCount > 0 || !this.#flush()) {
      this.#keepWhileSending()
      this.#read()
      return false
    }
    const message = Buffer.concat([encodeHead(bytes.length, !this.#hasSent), bytes])
    const sent = raw.trySend(message)
    if (sent === 0) return false
    this.#hasSent = true
    this.#rest = message.subarray(sent)
    if (this.#rest.length > 0) setImmediate(() => this.#flushLater())
    return true
  }

  recv(into: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      assertBytes(into)
      this.#assertOpen()
      if (this.#receives.waiting.length >= OPERATIONS_MAX) throw systemError('ENOBUFS', 'read')
      const end = this.#hasMessage() ? undefined : this.#ending()
      if (end !== undefined) return resolve(end)
      this.#receives.add(into).then(resolve, reject)
      this.#receiver.serve()
      this.#read()
      this.#updateLife()
    })
  }

  tryRecv(into: Uint8Array): number | undefined {
    assertBytes(into)
    this.#assertOpen()
    if (this.#receives.waiting.length > 0) return undefined
    this.#flush()
    const receiver = this.#receiver
    receiver.beginTry(into)
    if (receiver.taken < 0) this.#read()
    const length = receiver.endTry()
    if (length >= 0) return length
    this.#keepLong()
    return this.#ending()
  }

  nextLength(): number | undefined {
    this.#assertOpen()
    if (this.#receiver.nextLength < 0) this.#read()
    const { nextLength } = this.#receiver
    return nextLength < 0 ? this.#ending() : nextLength
  }

  shutdown(): void {
    this.#flushLater()
    this.#raw.shutdown()
  }

  close(isReset = false): void {
    if (this.#raw.isClosed) return
    if (!isReset) this.#flushLater()
    const hasUnreceived = this.#receiver.hasUnreceived || this.#end > this.#start
    this.#receiver.clear()
    this.#receives.failAll(systemError('ECANCELED', 'read'))
    this.#raw.close(isReset || hasUnreceived)
    this.#queue?.remove(this)
  }

  reset(): void {
    this.close(true)
  }

  look(): void {
    this.#flush()
    this.#read()
    this.#notifyQueue()
  }

  watch(queue: ReadinessQueue | undefined): void {
    this.#queue = queue
    if (queue === undefined) return
    this.#keepLong()
    this.#notifyQueue()
  }

  setAwaited(isAwaited: boolean): void {
    this.#isAwaited = isAwaited
    this.#updateLife()
  }

  // For the raw socket.

  handleReadable(): void {
    this.#read()
    this.#updateLife()
    this.#notifyQueue()
  }

  remove(): void {}

  /** Reads and takes what there is, as long as it has a place, or there is room for it to wait. */
  #read(): void {
    // A settled receive runs no code of the program here, but reading may report readable bytes again.
    if (this.#isReading || this.#raw.isClosed) return
    this.#isReading = true
    try {
      while (this.#readSome());
    } catch (error) {
      this.#fail(error as Error)
    } finally {
      this.#isReading = false
    }
    const { fault } = this.#receiver
    if (fault !== undefined) this.#fail(systemError('EPROTO', 'read', new Error(fault)))
    else if (this.#hasEnded && this.#receives.waiting.length > 0) this.#endReceives()
  }

  /** False if there is nothing more to read now, or no room for it. */
  #readSome(): boolean {
    const receiver = this.#receiver
    this.#start += receiver.take(this.#buffer, this.#start, this.#end - this.#start)
    if (receiver.taken >= 0 || receiver.fault !== undefined || this.#hasEnded) return false
    const isEmpty = this.#start === this.#end
    const room = isEmpty ? receiver.room(Number.POSITIVE_INFINITY) : undefined
    if (room !== undefined && room.length >= READ_SIZE) {
      const count = this.#receive(room)
      if (count > 0) receiver.advance(count)
      return count > 0
    }
    if (this.#buffer.length === 0) this.#buffer = new Uint8Array(READ_SIZE)
    if (this.#start > 0) {
      this.#buffer.copyWithin(0, this.#start, this.#end)
      this.#end -= this.#start
      this.#start = 0
    }
    if (this.#end === READ_SIZE) return false
    const count = this.#receive(this.#buffer.subarray(this.#end))
    this.#end += count
    return count > 0
  }

  /** How many bytes came; 0 if there are none. */
  #receive(into: Uint8Array): number {
    const count = this.#raw.tryRecv(into)
    if (count === 0) this.#hasEnded = true
    return count ?? 0
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#receives.failAll(error)
  }

  /** Nothing more comes: reports that to the receives that wait. */
  #endReceives(): void {
    if (this.#receiver.isWithin) return this.#fail(endWithin())
    for (const operation of this.#receives.waiting) operation.done = END
    this.#receives.finishAll()
  }

  #ending(): number | undefined {
    if (this.#failure !== undefined) throw this.#failure
    if (!this.#hasEnded) return undefined
    if (this.#receiver.isWithin) throw endWithin()
    return END
  }

  #hasMessage(): boolean {
    return this.#receiver.isReady(this.#end - this.#start)
  }

  /** Sends the rest of an earlier message; true if nothing of it is left. */
  #flush(): boolean {
    if (this.#rest.length > 0) this.#rest = this.#rest.subarray(this.#raw.trySend(this.#rest))
    return this.#rest.length === 0
  }

  /** Gives that rest to Node, which sends it as the event loop runs. */
  #flushLater(): void {
    if (this.#rest.length === 0 || this.#raw.isClosed) return
    const rest = this.#rest
    this.#rest = NO_BYTES
    this.#raw.writeCopy(rest)
  }

  /** See `FastMessageSocket`. */
  #keepWhileSending(): void {
    this.#receiver.keepFrom = 0
    this.#read()
  }

  #keepLong(): void {
    this.#keepFrom = EAGER_MAX + 1
    if (this.#receiver.keepFrom > this.#keepFrom) this.#receiver.keepFrom = this.#keepFrom
    this.#read()
  }

  #assertOpen(): void {
    if (this.#raw.isClosed) throw systemError('EBADF', 'read')
  }

  #notifyQueue(): void {
    if (this.isReadable) this.#queue?.handleReadable(this)
  }

  #updateLife(): void {
    this.#raw.setAwaited(this.#receives.waiting.length > 0 || this.#isAwaited)
  }
}

function endWithin(): Error {
  return systemError('ECONNRESET', 'read', new Error(END_WITHIN))
}
