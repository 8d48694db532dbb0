/** One simulated process with sockets that start on TCP, move to a channel, and back. */
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import type { HandleHost } from '../../fastsockets/handle/fast-handle-contract.ts'
import type { Accepted, SocketChannel, SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import type { SimulatedKernels } from '../../nic/simulated/index.ts'
import { ChannelProcess } from './channel-process.ts'
import { ClosingPhase } from './closing-phase.ts'
import { Broken } from './ledger.ts'
import { PromotedConnection, type PromotionEnd, type PromotionOwner } from './promotion-end.ts'

/** The client knows its port. */
const NO_PORT = 1

export class PromotionProcess
  extends ChannelProcess<PromotedConnection, PromotionEnd>
  implements PromotionOwner
{
  protected readonly socketsMax = 8
  readonly handleHost: HandleHost
  readonly closingPhase: ClosingPhase
  readonly #kernels: SimulatedKernels

  constructor(...args: ConstructorParameters<typeof ChannelProcess<PromotedConnection, PromotionEnd>>) {
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

  protected override openEnds(): PromotionEnd[] {
    return super.openEnds().filter(({ hasClosed }) => !hasClosed)
  }

  override async close(): Promise<void> {
    for (const end of this.ends) end.close(false)
    await super.close()
  }

  /** The kernels connect at once; the server's program has its socket a little later. */
  protected override connect(to: PromotionProcess): void {
    if (to === this || !to.isAlive) return
    const connection = new PromotedConnection(this.all.length, this, to, this.random)
    this.all.push(connection)
    const [near, far] = this.#kernels.connectPrograms(this.host, to.host)
    connection.client.open(near)
    to.host.post(0, () => {
      if (to.isAlive) connection.server.open(far)
      // The program has ended meanwhile, and nobody accepts it.
      else far.reset()
    })
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
