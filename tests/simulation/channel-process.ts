/** One simulated process with a channel of sockets to each other process. What its programs do is the kind of system. */
import { reliable } from '../../am/channels.ts'
import type { EventLoop } from '../../am/progress/event-loop.ts'
import { openProcess } from '../../am/simulated-process.ts'
import { allocateFresh } from '../../fastsockets/host/fresh-memory.ts'
import { drainTicks } from '../../fastsockets/host/node-internals.ts'
import { PortShare, SyntheticPorts } from '../../fastsockets/host/synthetic-ports.ts'
import type { ChannelHost } from '../../fastsockets/stream/channel-host.ts'
import { Departures } from '../../fastsockets/stream/departures.ts'
import { type Accepted, SocketChannel, type SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import { UnreadShare } from '../../fastsockets/stream/unread-budget.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { VirtualInterface } from '../../nic/index.ts'
import type { SimulatedHost, SimulatedKernels, SimulatedNetwork } from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'
import { type Player, QUEUE_SIZE } from './world.ts'

/** Chunks of this length are offered (ZCopy) where the hardware has one-sided access. */
const OFFER_MIN = 32 * 1024
const WINDOWS = [64, 64, 96, 256].map(kib => kib * 1024)

/** Windows and budget as the seed has them, and not as the machine's memory has. */
export class SimulatedShare extends UnreadShare {
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

/** One end of a connection, with the program that uses it. */
export interface PlayedEnd {
  /** Does what `dice`, from 50 to 999, says. */
  act(dice: number): void
  setReading(isReading: boolean): void
  findUnfinished(): string | undefined
}

/** `C`: the connections of the system, `E`: their ends. */
export abstract class ChannelProcess<C, E extends PlayedEnd = PlayedEnd> implements Player {
  readonly ends = new Set<E>()
  /** Most ends with which it opens one more. */
  protected abstract readonly socketsMax: number

  readonly number: number
  readonly host: SimulatedHost
  readonly isWaiting: boolean = false
  /** What went wrong in a callback of a program. */
  fault: unknown
  /** It has ended, or lost its NIC. */
  isOver = false
  readonly channels = new Map<ChannelProcess<C, E>, SocketChannel>()
  readonly share: SimulatedShare
  protected readonly random: FaultRandom
  /** All connections of the system. */
  protected readonly all: C[]
  protected readonly ports = new PortShare(
    new SyntheticPorts([20_000, 20_999], () => ({ stride: 1, offset: 0 })),
  )
  readonly #channelHost: ChannelHost
  readonly #isRaw: boolean

  constructor(
    network: SimulatedNetwork,
    kernels: SimulatedKernels,
    host: SimulatedHost,
    random: FaultRandom,
    all: C[],
    isRaw = false,
  ) {
    this.number = host.number
    this.host = host
    this.random = random
    this.all = all
    this.share = new SimulatedShare(random)
    this.#isRaw = isRaw
    const { eventLoop } = openProcess(network, kernels, host, false, QUEUE_SIZE).runtime
    this.#channelHost = channelHostOf(host, eventLoop, isRaw)
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.isOver
  }

  /** Owns `end` from now on: the channel to `peer`. */
  attach(
    end: VirtualInterface,
    peer: ChannelProcess<C, E>,
    transcript: Buffer,
    hangUp: () => void,
  ): SocketChannel {
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
      (stream, port, _address, _family, promised) => this.accept(stream, port, promised),
      forget,
      this.#isRaw,
      transcript,
      { ports: this.ports, unread: this.share },
      this.#channelHost,
    )
    channel.lifeline = { end: hangUp, checkNow: () => {}, ref: () => {}, unref: () => {} }
    this.channels.set(peer, channel)
    return channel
  }

  act(players: readonly Player[]): void {
    const { random } = this
    if (this.host.state !== 'running') return
    const ends = this.openEnds()
    const end = ends[random.within(0, ends.length - 1)]
    const dice = random.within(0, 999)
    if (end === undefined || (dice < 40 && ends.length < this.socketsMax)) {
      return this.connect(players[random.within(0, players.length - 1)] as this)
    }
    if (dice < 50) this.share.isOver = random.chance(0.3)
    else end.act(dice)
  }

  protected openEnds(): E[] {
    return [...this.ends]
  }

  /** Its program connects to a program of `to`. */
  protected abstract connect(to: this): void

  async close(): Promise<void> {
    for (const channel of [...this.channels.values()]) channel.close()
  }

  /** Throws if a rule does not hold now. */
  check(): void {
    if (this.share.bytes < 0) throw new Broken(`process ${this.number} keeps ${this.share.bytes} bytes`)
    for (const channel of this.channels.values()) {
      if (channel.refCount < 0)
        throw new Broken(`a channel of process ${this.number} counts ${channel.refCount}`)
    }
  }

  /** All faults have ended: the programs read all there is. */
  settleDown(): void {
    this.share.isOver = false
    for (const end of this.ends) end.setReading(true)
  }

  /** What is not finished, or still held, though nothing moves any more; undefined if nothing. */
  findUnfinished(): string | undefined {
    for (const end of this.ends) {
      const why = end.findUnfinished()
      if (why !== undefined) return why
    }
    return undefined
  }

  protected abstract accept(stream: SocketStream, port: number, promised: number): number | Accepted

  /** A port for an accepted connection, until its stream is closed. */
  protected allocatePort(stream: SocketStream, promised: number): number {
    const port = promised || this.ports.allocate()
    if (port === 0) throw new Broken('ports are not released')
    stream.onClosed = () => this.ports.release(port)
    return port
  }
}

export function channelHostOf({ clock }: SimulatedHost, eventLoop: EventLoop, isRaw: boolean): ChannelHost {
  return {
    clock,
    eventLoop,
    departures: new Departures(clock),
    allocate: allocateFresh,
    lookCount: () => eventLoop.stats.turns,
    drainTicks: isRaw ? () => {} : drainTicks,
    reportsLateResets: true,
    offerMinOf: () => OFFER_MIN,
    show: () => {},
    hide: () => {},
    showClosedListeners: () => {},
    hideClosedListeners: () => {},
  }
}
