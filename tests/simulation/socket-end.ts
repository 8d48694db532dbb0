/** Two programs at the ends of one connection, which check what their sockets say against what the other has done. */
import type { SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import type { StreamErrorCode, StreamSink } from '../../fastsockets/stream/stream-sink.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { Broken, findDifference, payloadOf } from './ledger.ts'

const FEW_MAX = 3000
const MANY_MAX = 150_000

/** The process, as its sockets know it. */
interface SocketOwner {
  readonly host: SimulatedHost
  readonly isAlive: boolean
  /** The sockets that the program has not closed. */
  readonly ends: Set<SimulatedSocketEnd>
}

export class Connection {
  readonly id: number
  readonly from: SocketOwner
  readonly to: SocketOwner
  readonly client: SimulatedSocketEnd
  readonly server: SimulatedSocketEnd
  /** The server has refused it. */
  isRefused = false

  constructor(id: number, from: SocketOwner, to: SocketOwner, random: FaultRandom) {
    this.id = id
    this.from = from
    this.to = to
    this.client = new SimulatedSocketEnd(this, from, 2 * id, random)
    this.server = new SimulatedSocketEnd(this, to, 2 * id + 1, random)
    this.client.peer = this.server
    this.server.peer = this.client
  }

  /** One of the processes is gone, or cannot be reached any more. */
  get isLost(): boolean {
    return !this.from.isAlive || !this.to.isAlive
  }
}

/** Window that a sender of `sent` bytes has lost, once nothing moves any more; undefined if none. */
export function findLostWindow(
  name: string,
  stream: SocketStream,
  peer: SocketStream,
  sent: number,
): string | undefined {
  const { window, reportedLast } = peer as unknown as { window: number; reportedLast: number }
  const due = window - sent + reportedLast
  return stream.windowLeft === due ? undefined : `${name} has lost ${due - stream.windowLeft} bytes of window`
}

export class SimulatedSocketEnd implements StreamSink {
  stream: SocketStream | undefined
  peer!: SimulatedSocketEnd
  readonly connection: Connection
  readonly copies: boolean
  isReading = false
  isConnected = false
  /** Bytes that the program has written, and read. */
  wrote = 0
  read = 0
  /** A write has returned false, and is not completed. */
  isWaiting = false
  hasShutDown = false
  hasClosed = false
  /** Closed by a reset, or with bytes of the peer unread, or the peer wrote after it. */
  isHarsh = false
  /** What the socket said last: that it was refused, the end, or an error. */
  ended: 'refused' | 'end' | StreamErrorCode | undefined
  readonly #process: SocketOwner
  readonly #number: number
  readonly #random: FaultRandom
  #hasFailed = false

  constructor(connection: Connection, process: SocketOwner, number: number, random: FaultRandom) {
    this.connection = connection
    this.#process = process
    this.#number = number
    this.#random = random
    this.copies = random.chance(0.5)
  }

  get name(): string {
    const side = this === this.connection.client ? 'client' : 'server'
    return `the ${side} of connection ${this.connection.id}`
  }

  act(dice: number): void {
    const random = this.#random
    if (dice < 300) this.setReading(true)
    else if (dice < 380) this.setReading(false)
    else if (dice < 880) this.#write(random.within(1, FEW_MAX))
    else if (dice < 950) this.#write(random.within(1, MANY_MAX))
    else if (dice < 975) this.#shutDown()
    else if (dice < 990) this.close(false)
    else if (dice < 995) this.close(true)
  }

  setReading(isReading: boolean): void {
    this.isReading = isReading
    if (isReading && this.isConnected && !this.hasClosed) this.stream?.startReading()
  }

  close(isReset: boolean): void {
    const { stream } = this
    if (this.hasClosed || stream === undefined) return
    this.hasClosed = true
    this.isHarsh = isReset || !this.isConnected || this.isWaiting || this.read < this.peer.wrote
    this.#process.ends.delete(this)
    stream.close(isReset)
  }

  /** Throws if the window is not within its bounds. */
  check(): void {
    const { stream } = this
    if (stream === undefined || stream.state !== 'open') return
    if (stream.windowLeft < 0) throw new Broken(`${this.name} has ${stream.windowLeft} bytes of window left`)
    if (stream.waitingLength > stream.window)
      throw new Broken(`${this.name} keeps ${stream.waitingLength} bytes, and its window is ${stream.window}`)
  }

  /** What has not happened though it must have, once nothing moves any more; undefined if nothing. */
  findUnfinished(): string | undefined {
    const { stream, peer, connection } = this
    if (stream === undefined || this.hasClosed) return undefined
    if (!this.isConnected)
      return this.ended === undefined ? `${this.name} waits for its connection` : undefined
    if (peer.hasClosed || connection.isLost)
      return this.ended === undefined ? `${this.name} has seen neither end nor error` : undefined
    if (this.read !== peer.wrote) return `${this.name} has read ${this.read} bytes of ${peer.wrote}`
    if (this.isWaiting) return `a write of ${this.name} waits`
    if ((this.ended === 'end') !== peer.hasShutDown) return `${this.name} has seen the end: ${this.ended}`
    return findLostWindow(this.name, stream, peer.stream as SocketStream, this.wrote)
  }

  // What the stream says.

  handleData(bytes: Buffer): number {
    if (this.hasClosed || !this.isReading || !this.isConnected || this.ended !== undefined)
      throw new Broken(`${this.name} gets bytes though it does not read`)
    const { peer, read } = this
    if (read + bytes.length > peer.wrote)
      throw new Broken(`${this.name} gets ${read + bytes.length} bytes of ${peer.wrote}`)
    const at = findDifference(peer.#number, bytes, read)
    if (at >= 0) throw new Broken(`byte ${read + at} of what ${this.name} reads is another`)
    // A program that reads into a buffer of its own may stop in the middle.
    const stops = this.copies && this.#random.chance(0.1)
    const taken = stops ? this.#random.within(0, bytes.length) : bytes.length
    if (taken < bytes.length) this.isReading = false
    this.read += taken
    return taken
  }

  handleEnd(): void {
    const { peer, connection } = this
    if (this.hasClosed || this.ended !== undefined) throw new Broken(`${this.name} ends twice`)
    if (!connection.isLost) {
      if (!peer.hasShutDown && !peer.hasClosed) throw new Broken(`${this.name} ends, and its peer has not`)
      if (!peer.isHarsh && this.read !== peer.wrote)
        throw new Broken(`${this.name} ends after ${this.read} bytes of ${peer.wrote}`)
    }
    this.ended = 'end'
  }

  handleError(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void {
    const { peer, connection } = this
    if (cause !== undefined) throw new Broken(`${this.name}: ${cause.message}`)
    if (this.#isDestroyed()) return
    const isOver =
      this.ended !== undefined && !(this.ended === 'end' && (syscall === 'write' || connection.isLost))
    if (this.hasClosed || isOver) throw new Broken(`${code} of ${this.name} after ${this.ended}`)
    if (!connection.isLost && !(peer.hasClosed && peer.isHarsh))
      throw new Broken(`${code} of ${this.name}, whose peer has read all`)
    this.ended = code
    this.#hasFailed = true
    this.isWaiting = false
    // As Node destroys a socket, in the next iteration of the event loop.
    this.#process.host.clock.setImmediate(() => this.close(false))
  }

  handleWritten(): void {
    if (this.#isDestroyed()) return
    if (this.hasClosed || !this.isWaiting)
      throw new Broken(`${this.name} completes a write that does not wait`)
    this.isWaiting = false
  }

  /** The program has destroyed the socket after its first error. Until the close, Node ignores later errors and written bytes. */
  #isDestroyed(): boolean {
    return this.#hasFailed && !this.hasClosed
  }

  handleSent(): void {}

  handleShutdown(): void {
    if (!this.hasShutDown) throw new Broken(`${this.name} completes a shutdown that it has not begun`)
  }

  handleConnected(): void {
    if (this.isConnected || this.connection.isRefused || this.peer.stream === undefined)
      throw new Broken(`${this.name} is connected once more, or without its server`)
    this.isConnected = true
  }

  handleRefused(): void {
    const { connection } = this
    if (this.isConnected || (!connection.isRefused && !connection.isLost))
      throw new Broken(`${this.name} is refused, and its server has not refused it`)
    this.ended = 'refused'
    this.hasClosed = true
    this.#process.ends.delete(this)
  }

  #write(length: number): void {
    const { stream, peer } = this
    if (stream === undefined || !this.isConnected || this.hasClosed || this.isWaiting || this.hasShutDown)
      return
    if (this.ended !== undefined && this.ended !== 'end') return
    if (stream.refusesWrites) {
      if (!peer.hasClosed && !this.connection.isLost && stream.channel.isOpen)
        throw new Broken(`${this.name} cannot write, and its peer is there`)
      return
    }
    if (peer.hasClosed) peer.isHarsh = true
    const from = this.wrote
    this.wrote += length
    this.isWaiting = !stream.write([payloadOf(this.#number, length, from)])
  }

  #shutDown(): void {
    const { stream } = this
    if (stream === undefined || !this.isConnected || this.hasClosed || this.hasShutDown) return
    if (stream.refusesWrites) return
    this.hasShutDown = true
    stream.shutdown()
  }
}
