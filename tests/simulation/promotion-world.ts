/** Systems of sockets that move between TCP and a channel: no byte is lost, doubled or out of order, and each move ends. */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { ChannelWorld } from './channel-world.ts'
import type { PromotedConnection } from './promotion-end.ts'
import { PromotionProcess } from './promotion-process.ts'

export class PromotionWorld extends ChannelWorld<PromotedConnection, PromotionProcess> {
  /** Moves to a channel, and back to TCP. */
  get finished(): number {
    return this.connections.reduce((sum, { moves }) => sum + moves, 0)
  }

  get returned(): number {
    return this.connections.reduce((sum, { returns }) => sum + returns, 0)
  }

  override dispose(): void {
    for (const { client, server } of this.connections) {
      client.dispose()
      server.dispose()
    }
  }

  protected make(host: SimulatedHost): PromotionProcess {
    return new PromotionProcess(this.network, this.kernels, host, this.random, this.connections)
  }
}
