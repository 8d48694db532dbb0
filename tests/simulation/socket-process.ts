/** One simulated process with sockets: a channel to each other process, and programs that write, read, and end. */
import { reliable } from '../../am/channels.ts'
import type { EventLoop } from '../../am/progress/event-loop.ts'
import { openProcess } from '../../am/simulated-process.ts'
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { allocateFresh } from '../../fastsockets/host/fresh-memory.ts'
import { drainTicks } from '../../fastsockets/host/node-internals.ts'
import { PortShare, SyntheticPorts } from '../../fastsockets/host/synthetic-ports.ts'
import type { ChannelHost } from '../../fastsockets/stream/channel-host.ts'
import { type Accepted, SocketChannel, type SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import { UnreadShare } from '../../fastsockets/stream/unread-budget.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { VirtualInterface } from '../../nic/index.ts'
import type { SimulatedHost, SimulatedKernels, SimulatedNetwork } from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'
import { Connection, type SimulatedSocketEnd } from './socket-end.ts'
import { type Player, QUEUE_SIZE } from './world.ts'

/** Chunks of this length are offered (ZCopy) where the hardware has one-sided access. */
const OFFER_MIN = 32 * 1024
/** Sockets of one process, most that it opens. */
const SOCKETS_MAX = 12
const WINDOWS = [64, 64, 96, 256].map(kib => kib * 1024)

/** Windows and budget as the seed has them, and not as the machine's memory has. */
class SimulatedShare extends UnreadShare {
  bytes = 0
  windows = 0
  isOver = false
  readonly #random: FaultRandom

  constructor(random: FaultRandom) {
    super()
    this.#random = random
  }

  override noteKept(length: number): void {
    this.bytes += length
  }

  override isOverBudget(): boolean {
    return this.isOver
  }

  override noteGranted(size: number): void {
    this.windows += size
  }

  override windowToGrant(): number {
    return WINDOWS[this.isOver ? 0 : this.#random.within(0, WINDOWS.length - 1)] as number
  }
}

export class SocketProcess implements Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly isWaiting = false
  readonly fault = undefined
  /** It has ended, or lost its NIC. */
  isOver = false
  readonly ends = new Set<SimulatedSocketEnd>()
  readonly channels = new Map<SocketProcess, SocketChannel>()
  readonly share: SimulatedShare
  readonly #random: FaultRandom
  readonly #ports = new PortShare(new SyntheticPorts([20_000, 20_999], () => ({ stride: 1, offset: 0 })))
  readonly #channelHost: ChannelHost
  readonly #all: Connection[]

  constructor(
    network: SimulatedNetwork,
    kernels: SimulatedKernels,
    host: SimulatedHost,
    random: FaultRandom,
    all: Connection[],
  ) {
    this.number = host.number
    this.host = host
    this.#random = random
    this.#all = all
    this.share = new SimulatedShare(random)
    const { eventLoop } = openProcess(network, kernels, host, false, QUEUE_SIZE).runtime
    this.#channelHost = channelHostOf(host, eventLoop)
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.isOver
  }

  /** Owns `end` from now on: the channel to `peer`. */
  attach(end: VirtualInterface, peer: SocketProcess, transcript: Buffer, hangUp: () => void): SocketChannel {
    const { clock } = this.host
    const lossless = reliable(end, {
      clock,
      retentionBytes: QUEUE_SIZE,
      peerTimeoutMs: Number.POSITIVE_INFINITY,
    })
    const forget = (): void => void this.channels.delete(peer)
    const channel = new SocketChannel(
      lossless,
      `process ${peer.number}`,
      (stream, port, _address, _family, promised) => this.#accept(stream, port, promised),
      forget,
      false,
      transcript,
      { ports: this.#ports, unread: this.share },
      this.#channelHost,
    )
    channel.lifeline = { end: hangUp, checkNow: () => {}, ref: () => {}, unref: () => {} }
    this.channels.set(peer, channel)
    return channel
  }

  act(players: readonly Player[]): void {
    const random = this.#random
    if (this.host.state !== 'running') return
    const ends = [...this.ends]
    const end = ends[random.within(0, ends.length - 1)]
    const dice = random.within(0, 999)
    if (end === undefined || (dice < 40 && ends.length < SOCKETS_MAX)) {
      return this.#connect(players[random.within(0, players.length - 1)] as SocketProcess)
    }
    if (dice < 50) this.share.isOver = random.chance(0.3)
    else end.act(dice)
  }

  async close(): Promise<void> {
    for (const channel of [...this.channels.values()]) channel.close()
  }

  #connect(to: SocketProcess): void {
    const channel = this.channels.get(to)
    if (channel === undefined || !to.isAlive) return
    const connection = new Connection(this.#all.length, this, to, this.#random)
    this.#all.push(connection)
    const end = connection.client
    const stream = channel.connect(end, connection.id + 1, '10.0.0.1', 4)
    if (stream === undefined) throw new Broken('a channel has no room for a socket')
    end.stream = stream
    this.ends.add(end)
  }

  #accept(stream: SocketStream, port: number, promised: number): number | Accepted {
    const connection = this.#all[port - 1]
    if (connection === undefined || connection.to !== this) throw new Broken(`a CONNECT to port ${port}`)
    if (this.#random.chance(0.05)) {
      connection.isRefused = true
      return REFUSAL.NOT_LISTENING
    }
    const { server } = connection
    if (server.stream !== undefined) throw new Broken(`connection ${connection.id} is accepted twice`)
    const clientPort = promised || this.#ports.allocate()
    if (clientPort === 0) throw new Broken('ports are not released')
    stream.onClosed = () => this.#ports.release(clientPort)
    server.stream = stream
    stream.sink = server
    return {
      clientPort,
      begin: () => {
        server.isConnected = true
        this.ends.add(server)
      },
    }
  }
}

function channelHostOf({ clock }: SimulatedHost, eventLoop: EventLoop): ChannelHost {
  return {
    clock,
    eventLoop,
    allocate: allocateFresh,
    lookCount: () => eventLoop.stats.turns,
    drainTicks,
    reportsLateResets: true,
    offerMinOf: () => OFFER_MIN,
    show: () => {},
    hide: () => {},
  }
}
