/**
 * Two programs at the ends of one connection of raw sockets: bytes, or messages. They check what they receive against what the
 * other has sent, and use memory again as soon as it is theirs.
 */
import { FastMessageSocket } from '../../fastsockets/raw/fast-message-socket.ts'
import { FastRawSocket } from '../../fastsockets/raw/fast-raw-socket.ts'
import { HEAD_SIZE, PREAMBLE_SIZE } from '../../fastsockets/raw/message-layout.ts'
import { END } from '../../fastsockets/raw/message-socket.ts'
import type { SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { Broken, findDifference, payloadOf } from './ledger.ts'
import { findLostWindow } from './socket-end.ts'

const FEW_MAX = 3000
const MANY_MAX = 150_000
/** Operations of one end that wait, each way. */
const WAITING_MAX = 8
/** Settled receives whose memory is looked at again. */
const REMEMBERED_MAX = 8
const SCRIBBLE = Buffer.alloc(MANY_MAX, 0xee)

interface RawOwner {
  readonly number: number
  readonly host: SimulatedHost
  readonly isAlive: boolean
  readonly ends: Set<RawEnd>
  fail(error: unknown): void
}

export class RawConnection {
  readonly id: number
  readonly from: RawOwner
  readonly to: RawOwner
  readonly client: RawEnd
  readonly server: RawEnd
  /** The server has refused it. */
  isRefused = false

  constructor(id: number, from: RawOwner, to: RawOwner, random: FaultRandom) {
    this.id = id
    this.from = from
    this.to = to
    const End = random.chance(0.5) ? BytesEnd : MessagesEnd
    this.client = new End(this, from, 2 * id, random)
    this.server = new End(this, to, 2 * id + 1, random)
    this.client.peer = this.server
    this.server.peer = this.client
  }

  /** One of the processes is gone, or cannot be reached any more. */
  get isLost(): boolean {
    return !this.from.isAlive || !this.to.isAlive
  }
}

/** What the two types of sockets have in common. */
export abstract class RawEnd {
  abstract readonly socket: FastRawSocket | FastMessageSocket
  peer!: RawEnd
  readonly connection: RawConnection
  isConnected = false
  hasShutDown = false
  hasClosed = false
  /** Closed by a reset, or with something of the peer unread or own sends waiting, or the peer sent after it. */
  isHarsh = false
  /** What the socket said last: that it was refused, the end, or the code of an error. */
  ended: string | undefined
  /** Bytes in the stream, heads of messages included. */
  streamLength = 0
  /** Bytes that this end has sent, and received. */
  protected sent = 0
  protected received = 0
  readonly #process: RawOwner
  readonly #number: number
  readonly #random: FaultRandom
  #isReading = false
  #sends = 0
  #receives = 0
  #hasSendFailed = false
  /** Memory of receives that have settled: it is the program's. */
  readonly #returned: Uint8Array[] = []

  constructor(connection: RawConnection, process: RawOwner, number: number, random: FaultRandom) {
    this.connection = connection
    this.#process = process
    this.#number = number
    this.#random = random
  }

  get name(): string {
    const side = this === this.connection.client ? 'client' : 'server'
    return `the raw ${side} of connection ${this.connection.id}`
  }

  get stream(): SocketStream {
    return (this.socket as unknown as { stream(): SocketStream }).stream()
  }

  /** Whether all that the peer has sent was received. */
  protected abstract readonly isAllRead: boolean
  /** What `recv` says at the end. */
  protected abstract readonly end: number
  protected abstract trySend(bytes: Uint8Array): number
  /** The bytes are sent, or will be. */
  protected abstract noteSent(length: number): void
  /** `count` bytes have arrived, as many of them in `into` as it has room for. */
  protected abstract noteReceived(into: Uint8Array, count: number): void
  protected checkNext(): void {}

  act(dice: number): void {
    const random = this.#random
    if (!this.isConnected) return dice < 60 ? this.close(false) : undefined
    if (dice < 250) this.setReading(true)
    else if (dice < 330) this.setReading(false)
    else if (dice < 450) this.tryReceive()
    else if (dice < 470) this.checkNext()
    else if (dice < 700) this.#send(random.within(0, FEW_MAX))
    else if (dice < 790) this.#trySend(random.within(0, FEW_MAX))
    else if (dice < 820) this.#send(random.within(1, MANY_MAX))
    else if (dice < 840) this.#trySend(random.within(1, MANY_MAX))
    else if (dice < 950) this.#receive()
    else if (dice < 970) this.#shutDown()
    else if (dice < 985) this.close(false)
    else if (dice < 990) this.close(true)
  }

  setReading(isReading: boolean): void {
    this.#isReading = isReading
    if (isReading && this.#receives === 0) this.#receive()
  }

  /** Takes what has arrived, without a wait. `isReady`: the completion queue says that there is something. */
  tryReceive(isReady = false): void {
    const { socket } = this
    if (this.hasClosed || !this.isConnected) return
    const isReadable = isReady || socket.isReadable
    const into = this.#memory()
    try {
      const count = socket.tryRecv(into)
      if (count !== undefined) {
        if (this.#receives > 0) throw new Broken(`${this.name} receives past a receive that waits`)
        this.#handleReceived(into, count)
      } else if (isReadable && this.#receives === 0 && !this.peer.hasClosed && !this.connection.isLost)
        throw new Broken(`${this.name} is readable, and has nothing`)
    } catch (error) {
      this.handleFailure(error)
    }
  }

  close(isReset: boolean): void {
    if (this.hasClosed) return
    this.hasClosed = true
    this.isHarsh = isReset || !this.isConnected || this.#sends > 0 || !this.isAllRead
    this.#process.ends.delete(this)
    if (isReset) this.socket.reset()
    else this.socket.close()
  }

  handleAnswer(isConnected: boolean): void {
    const { connection } = this
    if (isConnected) {
      if (this.hasClosed) throw new Broken(`${this.name} is connected after it has closed`)
      this.isConnected = true
    } else if (!this.hasClosed) {
      if (!connection.isRefused && !connection.isLost)
        throw new Broken(`${this.name} is refused, and its server has not refused it`)
      this.ended = 'refused'
      this.hasClosed = true
      this.#process.ends.delete(this)
    }
  }

  /** Throws if a rule does not hold now. */
  check(): void {
    for (const memory of this.#returned) {
      if (!SCRIBBLE.subarray(0, memory.length).equals(memory))
        throw new Broken(`memory that ${this.name} has returned is written to`)
    }
    if (this.hasClosed || !this.isConnected) return
    const { stream } = this
    if (stream.state !== 'open') return
    // A write into a posted receive goes past the window, until the peer reports it.
    if (stream.windowLeft < -MANY_MAX)
      throw new Broken(`${this.name} has ${stream.windowLeft} bytes of window left`)
    if (stream.waitingLength > stream.window)
      throw new Broken(`${this.name} keeps ${stream.waitingLength} bytes, and its window is ${stream.window}`)
  }

  /** What has not happened though it must have, once nothing moves any more; undefined if nothing. */
  findUnfinished(): string | undefined {
    const { peer, connection } = this
    if (this.hasClosed) return undefined
    if (!this.isConnected) return `${this.name} waits for its connection`
    if (peer.hasClosed || connection.isLost)
      return this.ended === undefined ? `${this.name} has seen neither end nor error` : undefined
    if (!this.isAllRead) return `${this.name} has received ${this.received} bytes of ${peer.sent}`
    if (this.#sends > 0) return `a send of ${this.name} waits`
    if ((this.ended === 'end') !== peer.hasShutDown) return `${this.name} has seen the end: ${this.ended}`
    return findLostWindow(this.name, this.stream, peer.stream, this.streamLength)
  }

  /** A receive waits. */
  get isReceiving(): boolean {
    return this.#receives > 0
  }

  /** Throws if the bytes are not the next ones of the peer. */
  protected checkBytes(bytes: Uint8Array): void {
    const { peer } = this
    if (this.received + bytes.length > peer.sent)
      throw new Broken(`${this.name} gets ${this.received + bytes.length} bytes of ${peer.sent}`)
    const at = findDifference(peer.#number, bytes, this.received)
    if (at >= 0) throw new Broken(`byte ${this.received + at} of what ${this.name} receives is another`)
  }

  get #maySend(): boolean {
    return (
      !this.hasClosed &&
      !this.hasShutDown &&
      !this.#hasSendFailed &&
      this.#sends < WAITING_MAX &&
      (this.ended === undefined || this.ended === 'end')
    )
  }

  #next(length: number): Buffer {
    if (this.peer.hasClosed) this.peer.isHarsh = true
    return Buffer.from(payloadOf(this.#number, length, this.sent))
  }

  #memory(): Uint8Array {
    const random = this.#random
    return new Uint8Array(random.within(1, random.chance(0.1) ? MANY_MAX : FEW_MAX))
  }

  #send(length: number): void {
    if (!this.#maySend) return
    const bytes = this.#next(length)
    this.noteSent(length)
    this.#sends++
    this.#watch(
      this.socket.send(bytes).then(
        count => {
          this.#sends--
          if (count !== length) throw new Broken(`${this.name} has sent ${count} bytes of ${length}`)
          bytes.fill(0)
        },
        error => {
          this.#sends--
          this.#handleSendFailure(error)
        },
      ),
    )
  }

  #trySend(length: number): void {
    if (!this.#maySend) return
    const bytes = this.#next(length)
    try {
      const count = this.trySend(bytes)
      if (count >= 0) this.noteSent(count)
    } catch (error) {
      this.#handleSendFailure(error)
    }
    bytes.fill(0)
  }

  #receive(): void {
    if (this.hasClosed || !this.isConnected || this.ended !== undefined || this.#receives >= WAITING_MAX)
      return
    const into = this.#memory()
    this.#receives++
    this.#watch(
      this.socket.recv(into).then(
        count => {
          this.#receives--
          this.#handleReceived(into, count)
          if (this.#isReading && this.#receives === 0) this.#receive()
        },
        error => {
          this.#receives--
          this.#keep(into)
          this.handleFailure(error)
        },
      ),
    )
  }

  #shutDown(): void {
    if (this.hasClosed || this.hasShutDown) return
    this.hasShutDown = true
    this.socket.shutdown()
  }

  #handleReceived(into: Uint8Array, count: number): void {
    if (count === this.end) return this.#handleEnd()
    if (this.ended !== undefined) throw new Broken(`${this.name} receives after its end`)
    this.noteReceived(into, count)
    this.#keep(into)
  }

  #keep(into: Uint8Array): void {
    into.set(SCRIBBLE.subarray(0, into.length))
    if (this.#returned.push(into) > REMEMBERED_MAX) this.#returned.shift()
  }

  /** A raw socket reports its end again and again. */
  #handleEnd(): void {
    const { peer, connection } = this
    if (!connection.isLost) {
      if (!peer.hasShutDown && !peer.hasClosed) throw new Broken(`${this.name} ends, and its peer has not`)
      if (!peer.isHarsh && !this.isAllRead)
        throw new Broken(`${this.name} ends after ${this.received} bytes of ${peer.sent}`)
    }
    this.ended ??= 'end'
  }

  /** The program may go on to receive. */
  #handleSendFailure(error: unknown): void {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECANCELED' && this.hasClosed) return
    if (code !== 'ECONNRESET' && code !== 'EPIPE') throw error
    this.#hasSendFailed = true
    if (!this.connection.isLost && !this.peer.hasClosed)
      throw new Broken(`a send of ${this.name} fails with ${code}, and its peer is there`)
  }

  protected handleFailure(error: unknown): void {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECANCELED' && this.hasClosed) return
    if (code !== 'ECONNRESET') throw error
    const { peer, connection } = this
    if (!connection.isLost && !(peer.hasClosed && peer.isHarsh))
      throw new Broken(`${code} of ${this.name}, whose peer has read all`)
    this.ended = code
    this.#process.host.clock.setImmediate(() => this.close(false))
  }

  #watch(promise: Promise<void>): void {
    promise.catch(error => this.#process.fail(error))
  }
}

class BytesEnd extends RawEnd {
  readonly socket = new FastRawSocket()
  protected readonly end = 0

  protected get isAllRead(): boolean {
    return this.received === (this.peer as BytesEnd).sent
  }

  protected trySend(bytes: Uint8Array): number {
    return this.socket.trySend(bytes)
  }

  protected noteSent(length: number): void {
    this.sent += length
    this.streamLength += length
  }

  protected noteReceived(into: Uint8Array, count: number): void {
    if (count > into.length) throw new Broken(`${this.name} receives more than it has room for`)
    this.checkBytes(into.subarray(0, count))
    this.received += count
  }
}

class MessagesEnd extends RawEnd {
  readonly socket = new FastMessageSocket()
  protected readonly end = END
  /** Of the messages that this end has sent. */
  readonly #lengths: number[] = []
  #receivedCount = 0

  protected get isAllRead(): boolean {
    return this.#receivedCount === (this.peer as MessagesEnd).#lengths.length
  }

  /** A message without bytes counts, too: -1 if none is sent. */
  protected trySend(bytes: Uint8Array): number {
    return this.socket.trySend(bytes) ? bytes.length : -1
  }

  protected noteSent(length: number): void {
    this.streamLength += HEAD_SIZE + length + (this.#lengths.length === 0 ? PREAMBLE_SIZE : 0)
    this.#lengths.push(length)
    this.sent += length
  }

  /** The message is whole, or the part of it for which there is room. */
  protected noteReceived(into: Uint8Array, count: number): void {
    this.#expect(count)
    this.checkBytes(into.subarray(0, Math.min(count, into.length)))
    this.#receivedCount++
    this.received += count
  }

  protected override checkNext(): void {
    if (this.hasClosed || this.isReceiving) return
    try {
      const length = this.socket.nextLength()
      if (length !== undefined && length !== END) this.#expect(length)
    } catch (error) {
      this.handleFailure(error)
    }
  }

  #expect(length: number): void {
    const expected = (this.peer as MessagesEnd).#lengths[this.#receivedCount]
    if (length !== expected)
      throw new Broken(
        `message ${this.#receivedCount} of ${this.name} has ${length} bytes in place of ${expected}`,
      )
  }
}
