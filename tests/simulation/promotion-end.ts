/**
 * Two programs at the ends of one connection, which starts on a simulated TCP and moves to a channel and back in mid-stream. The
 * sockets are `net.Socket` and the product's handles; the programs check their events against what the other has done.
 */
import net from 'node:net'
import { fastHandleClass, fastOf } from '../../fastsockets/handle/fast-handle.ts'
import type { FastSocket, HandleHost, WriteCallback } from '../../fastsockets/handle/fast-handle-contract.ts'
import { type ConnectedTcp, movableTcp, provideWrite } from '../../fastsockets/handle/tcp-below.ts'
import { handleExchange } from '../../fastsockets/handle/tls-sockets.ts'
import { type NodeInternals, nodeInternals, type SocketName } from '../../fastsockets/host/node-internals.ts'
import { PROMOTION } from '../../fastsockets/host/unix-paths.ts'
import { mayReturn, moveToTcp } from '../../fastsockets/promotion/demotion.ts'
import { promotedOf } from '../../fastsockets/promotion/find-promoted.ts'
import { PromotedHandle } from '../../fastsockets/promotion/promoted-handle.ts'
import { hideTcp } from '../../fastsockets/status/tcp-rows.ts'
import type { SocketChannel, SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import type { StreamAddresses } from '../../fastsockets/stream/stream-addresses.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedTcp } from '../../nic/simulated/index.ts'
import type { ClosingPhase } from './closing-phase.ts'
import { Broken, findDifference, payloadOf } from './ledger.ts'
import { SimulatedTcpHandle } from './tcp-handle.ts'

const FEW_MAX = 3000
const MANY_MAX = 150_000

const { _writeGeneric: plainWrite } = net.Socket.prototype as unknown as FastSocket
fastHandleClass()
provideWrite(plainWrite)
const exchange = handleExchange(nodeInternals() as NodeInternals)

/** As the relinked `net.Socket` (relink/install.ts). */
class RelinkedSocket extends net.Socket {
  _writeGeneric(writev: boolean, data: unknown, encoding: string, callback: WriteCallback): unknown {
    const socket = this as unknown as FastSocket
    const fast = fastOf(socket._handle)
    if (fast === undefined) return plainWrite.call(socket, writev, data, encoding, callback)
    fast.writeFromSocket(socket, writev, data, encoding, callback)
    return undefined
  }

  override resetAndDestroy(): this {
    const socket = this as unknown as FastSocket
    if (fastOf(socket._handle) === undefined) return super.resetAndDestroy()
    socket._reset()
    return this
  }
}

/** The process, as its sockets know it. */
export interface PromotionOwner {
  readonly number: number
  readonly isAlive: boolean
  readonly handleHost: HandleHost
  readonly closingPhase: ClosingPhase
  readonly ends: Set<PromotionEnd>
  channelTo(peer: PromotionOwner): SocketChannel | undefined
  /** A rule is broken. */
  fail(error: unknown): void
}

export class PromotedConnection {
  readonly id: number
  readonly from: PromotionOwner
  readonly to: PromotionOwner
  readonly client: PromotionEnd
  readonly server: PromotionEnd
  /** Moves to the channel, and back, of which the client knows. */
  moves = 0
  returns = 0

  constructor(id: number, from: PromotionOwner, to: PromotionOwner, random: FaultRandom) {
    this.id = id
    this.from = from
    this.to = to
    this.client = new PromotionEnd(this, from, random)
    this.server = new PromotionEnd(this, to, random)
  }

  /** One of the processes is gone, or cannot be reached any more. */
  get isLost(): boolean {
    return !this.from.isAlive || !this.to.isAlive
  }

  get addresses(): StreamAddresses {
    const [client, server] = this.#names
    return {
      address: server.address,
      source: client.address,
      family: 'IPv4',
      serverPort: server.port,
      clientPort: client.port,
    }
  }

  namesOf(end: PromotionEnd): readonly [own: SocketName, peer: SocketName] {
    const [client, server] = this.#names
    return end === this.client ? [client, server] : [server, client]
  }

  get #names(): readonly [client: Required<SocketName>, server: Required<SocketName>] {
    const nameOf = (process: PromotionOwner, port: number): Required<SocketName> => ({
      address: `10.0.0.${process.number + 1}`,
      port,
      family: 'IPv4',
    })
    return [nameOf(this.from, 30_000 + this.id), nameOf(this.to, 80)]
  }
}

export class PromotionEnd {
  readonly connection: PromotedConnection
  readonly #process: PromotionOwner
  readonly #random: FaultRandom
  #socket: FastSocket | undefined
  /** Bytes that the program has written, and read. */
  wrote = 0
  read = 0
  /** A write has returned false, and 'drain' has not come. */
  isWaiting = false
  hasEnded = false
  hasClosed = false
  /** Closed by a reset, or with bytes of the peer unread or own ones unsent, or the peer wrote after it. */
  isHarsh = false
  /** What the socket said last: the end, or the code of an error. */
  ended: string | undefined
  /** Requests to move, and ways back, that are under way. */
  #asked = 0
  #returning = 0

  constructor(connection: PromotedConnection, process: PromotionOwner, random: FaultRandom) {
    this.connection = connection
    this.#process = process
    this.#random = random
  }

  get peer(): PromotionEnd {
    const { client, server } = this.connection
    return this === client ? server : client
  }

  get name(): string {
    const side = this === this.connection.client ? 'client' : 'server'
    return `the ${side} of connection ${this.connection.id}`
  }

  /** The program has the connection. */
  open(tcp: SimulatedTcp): void {
    const handle = SimulatedTcpHandle.of(tcp, this.connection.namesOf(this), this.#process.closingPhase)
    // Versions of Node differ in how much a socket buffers.
    const options = { handle, allowHalfOpen: true, highWaterMark: 16 * 1024 } as net.SocketConstructorOpts
    const socket = new RelinkedSocket(options)
    this.#socket = socket as unknown as FastSocket
    this.#process.ends.add(this)
    socket.on(
      'data',
      this.#checked((bytes: Buffer) => this.#handleData(bytes)),
    )
    socket.on(
      'end',
      this.#checked(() => this.#handleEnd()),
    )
    socket.on(
      'drain',
      this.#checked(() => this.#handleDrain()),
    )
    socket.on(
      'error',
      this.#checked((error: NodeJS.ErrnoException) => this.#handleError(error)),
    )
    socket.on(
      'close',
      this.#checked(() => this.#handleClose()),
    )
    socket.pause()
  }

  /** The status page, which belongs to the real process, would keep the socket. */
  dispose(): void {
    if (this.#socket !== undefined) hideTcp(this.#socket)
  }

  act(dice: number): void {
    const random = this.#random
    const isClient = this === this.connection.client
    if (dice < 280) this.setReading(true)
    else if (dice < 340) this.setReading(false)
    else if (dice < 760) this.#write(random.within(1, FEW_MAX))
    else if (dice < 820) this.#write(random.within(1, MANY_MAX))
    else if (dice < 900 && isClient) this.#move()
    else if (dice < 940) this.#return()
    else if (dice < 965) this.#end()
    else if (dice < 975) this.close(false)
    else if (dice < 980) this.close(true)
  }

  setReading(isReading: boolean): void {
    if (this.hasClosed) return
    if (isReading) this.#socket?.resume()
    else this.#socket?.pause()
  }

  close(isReset: boolean): void {
    const socket = this.#socket
    if (socket === undefined || this.hasClosed) return
    this.#noteClose()
    // libuv refuses to reset a connection whose shutdown is under way.
    const mayReset = isReset && !this.hasEnded
    this.isHarsh ||= mayReset
    if (mayReset) socket.resetAndDestroy()
    else socket.destroy()
  }

  /** What has not happened though it must have, once nothing moves any more; undefined if nothing. */
  findUnfinished(): string | undefined {
    const { peer, connection } = this
    const socket = this.#socket
    if (this.#asked > 0) return `the request of ${this.name} to move has no answer`
    if (this.#returning > 0) return `${this.name} is still on its way back`
    if (socket === undefined || this.hasClosed) return undefined
    if (peer.hasClosed || connection.isLost)
      return this.ended === undefined ? `${this.name} has seen neither end nor error` : undefined
    if (this.read !== peer.wrote) return `${this.name} has read ${this.read} bytes of ${peer.wrote}`
    // Node emits no 'drain' after `end()`.
    if ((this.isWaiting && !this.hasEnded) || socket.writableLength > 0)
      return `a write of ${this.name} waits`
    if ((this.ended === 'end') !== peer.hasEnded) return `${this.name} has seen the end: ${this.ended}`
    return undefined
  }

  // The server's side of a move.

  /** The handle that accepts a request to move; undefined if the connection cannot move now (promotion/accept-promotion.ts). */
  acceptor(): PromotedHandle | undefined {
    const socket = this.#socket
    const placed = promotedOf(socket?._handle)
    if (placed !== undefined) return placed.mayMove ? placed : undefined
    const tcp = socket && movableTcp(socket)
    return tcp && this.#makeHandle(tcp)
  }

  #makeHandle(tcp: ConnectedTcp): PromotedHandle {
    return new PromotedHandle(tcp, exchange, this.#socket, undefined, this.#process.handleHost)
  }

  // What the program does.

  #move(): void {
    const { connection } = this
    const socket = this.#socket as FastSocket
    const channel = this.#process.channelTo(connection.to)
    if (channel === undefined || !channel.isOpen) return
    const placed = promotedOf(socket._handle)
    const tcp = placed === undefined ? movableTcp(socket) : placed.mayMove ? placed.tcp : undefined
    if (tcp === undefined) return
    const handle = placed ?? this.#makeHandle(tcp)
    const stream = channel.connect(handle, connection.id + 1, 'the four addresses', PROMOTION)
    if (stream === undefined) throw new Broken('a channel has no room for a socket')
    stream.isPromotion = true
    stream.addresses = connection.addresses
    this.#asked++
    handle.ask(stream as SocketStream, isMoved => {
      this.#asked--
      if (isMoved) connection.moves++
    })
  }

  #return(): void {
    const socket = this.#socket as FastSocket
    if (!mayReturn(socket)) return
    this.#returning++
    void moveToTcp(socket).then(isBack => {
      this.#returning--
      if (isBack) this.connection.returns++
    })
  }

  #write(length: number): void {
    const { peer } = this
    const socket = this.#socket as FastSocket
    if (this.isWaiting || this.hasEnded || this.hasClosed || (this.ended ?? 'end') !== 'end') return
    if (peer.hasClosed) peer.isHarsh = true
    const from = this.wrote
    this.wrote += length
    // Half of them as one `_writev` of two pieces.
    const first = this.#random.chance(0.5) ? length >> 1 : 0
    if (first > 0) {
      socket.cork()
      socket.write(payloadOf(this.#number, first, from))
    }
    this.isWaiting = !socket.write(payloadOf(this.#number, length - first, from + first))
    if (first > 0) socket.uncork()
  }

  #end(): void {
    if (this.hasEnded || this.hasClosed) return
    this.hasEnded = true
    this.#socket?.end()
  }

  // What the socket says.

  #handleData(bytes: Buffer): void {
    const { peer, read } = this
    // A socket that was told to resume emits what it has buffered, though it is destroyed before.
    if (this.hasClosed) return
    if (this.ended !== undefined) throw new Broken(`${this.name} gets bytes after its end`)
    if (read + bytes.length > peer.wrote)
      throw new Broken(`${this.name} gets ${read + bytes.length} bytes of ${peer.wrote}`)
    const at = findDifference(peer.#number, bytes, read)
    if (at >= 0) throw new Broken(`byte ${read + at} of what ${this.name} reads is another`)
    this.read += bytes.length
    // How much a socket emits after a write has failed, until its error, is another thing in each version of Node.
    if (this.#socket?.errored) return
    if (this.#random.chance(0.05)) this.setReading(false)
  }

  #handleEnd(): void {
    const { peer, connection } = this
    if (this.hasClosed || this.ended !== undefined) throw new Broken(`${this.name} ends twice`)
    if (!connection.isLost) {
      if (!peer.hasEnded && !peer.hasClosed) throw new Broken(`${this.name} ends, and its peer has not`)
      if (!peer.isHarsh && this.read !== peer.wrote)
        throw new Broken(`${this.name} ends after ${this.read} bytes of ${peer.wrote}`)
    }
    this.ended = 'end'
  }

  #handleDrain(): void {
    if (!this.isWaiting) throw new Broken(`'drain' of ${this.name}, which does not wait`)
    this.isWaiting = false
  }

  #handleError(error: NodeJS.ErrnoException): void {
    const { peer, connection } = this
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE' && error.code !== 'ETIMEDOUT') throw error
    if (!connection.isLost && !(peer.hasClosed && peer.isHarsh))
      throw new Broken(`${error.code} of ${this.name}, whose peer has read all`)
    this.ended = error.code
    this.isWaiting = false
  }

  /** Node has destroyed the socket: at both ends of the streams, or after an error. */
  #handleClose(): void {
    if (!this.hasClosed) this.#noteClose()
  }

  #noteClose(): void {
    const unsentLength = this.#socket?.writableLength ?? 0
    this.hasClosed = true
    this.isWaiting = false
    this.isHarsh = this.read < this.peer.wrote || unsentLength > 0 || (this.ended ?? 'end') !== 'end'
  }

  get #number(): number {
    return 2 * this.connection.id + (this === this.connection.client ? 0 : 1)
  }

  /** A listener whose error does not reach the socket. */
  #checked<A extends unknown[]>(listener: (...args: A) => void): (...args: A) => void {
    return (...args) => {
      try {
        listener(...args)
      } catch (error) {
        this.#process.fail(error)
      }
    }
  }
}
