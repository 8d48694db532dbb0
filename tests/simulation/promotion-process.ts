/** One simulated process with sockets that start on TCP, move to a channel, and back. */
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import type { HandleHost } from '../../fastsockets/handle/fast-handle-contract.ts'
import type { Accepted, SocketChannel, SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import type { SimulatedKernels } from '../../nic/simulated/index.ts'
import { ChannelProcess } from './channel-process.ts'
import { ClosingPhase } from './closing-phase.ts'
import { Broken } from './ledger.ts'
import { PromotedConnection, type PromotionEnd, type PromotionOwner } from './promotion-end.ts'
import type { Player } from './world.ts'

/** Sockets of one process, most that it opens. */
const SOCKETS_MAX = 8
/** The client knows its port. */
const NO_PORT = 1

export class PromotionProcess extends ChannelProcess<PromotedConnection> implements PromotionOwner {
  readonly ends = new Set<PromotionEnd>()
  readonly handleHost: HandleHost
  readonly closingPhase: ClosingPhase
  readonly #kernels: SimulatedKernels

  constructor(...args: ConstructorParameters<typeof ChannelProcess<PromotedConnection>>) {
    super(...args)
    const { host } = this
    this.#kernels = args[1]
    this.closingPhase = new ClosingPhase(host)
    this.handleHost = {
      clock: host.clock,
      runInClosingPhase: action => this.closingPhase.add(action),
    }
  }

  fail(error: unknown): void {
    this.fault ??= error
  }

  channelTo(peer: PromotionOwner): SocketChannel | undefined {
    return this.channels.get(peer as PromotionProcess)
  }

  act(players: readonly Player[]): void {
    const { random } = this
    if (this.host.state !== 'running') return
    const ends = [...this.ends].filter(({ hasClosed }) => !hasClosed)
    const end = ends[random.within(0, ends.length - 1)]
    const dice = random.within(0, 999)
    if (end === undefined || (dice < 40 && ends.length < SOCKETS_MAX)) {
      return this.#connect(players[random.within(0, players.length - 1)] as PromotionProcess)
    }
    if (dice < 50) this.share.isOver = random.chance(0.3)
    else end.act(dice)
  }

  settleDown(): void {
    this.share.isOver = false
    for (const end of this.ends) end.setReading(true)
  }

  findUnfinished(): string | undefined {
    for (const end of this.ends) {
      const why = end.findUnfinished()
      if (why !== undefined) return why
    }
    return undefined
  }

  override async close(): Promise<void> {
    for (const end of this.ends) end.close(false)
    await super.close()
  }

  /** The kernels connect at once; the server's program has its socket a little later. */
  #connect(to: PromotionProcess): void {
    if (to === this || !to.isAlive) return
    const connection = new PromotedConnection(this.all.length, this, to, this.random)
    this.all.push(connection)
    const [near, far] = this.#kernels.connectPrograms(this.host, to.host)
    connection.client.open(near)
    to.host.post(0, () => connection.server.open(far))
  }

  protected accept(stream: SocketStream, port: number, promised: number): number | Accepted {
    const connection = this.all[port - 1]
    if (connection === undefined || connection.to !== this) throw new Broken(`a CONNECT to port ${port}`)
    const handle = this.random.chance(0.05) ? undefined : connection.server.acceptor()
    if (handle === undefined) return REFUSAL.NOT_LISTENING
    stream.channel.portShare.release(promised)
    stream.isPromotion = true
    stream.addresses = connection.addresses
    return { clientPort: promised || NO_PORT, begin: () => handle.accept(stream) }
  }
}
