/** Systems of raw sockets and message sockets: what was sent arrives in order, once and whole, and memory goes back to its program. */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { ChannelWorld } from './channel-world.ts'
import type { RawConnection } from './raw-end.ts'
import { RawProcess } from './raw-process.ts'

export class RawWorld extends ChannelWorld<RawConnection, RawProcess> {
  /** Connections of which one end has seen the end of the other. */
  get finished(): number {
    return this.connections.filter(({ client, server }) => client.ended ?? server.ended).length
  }

  get returned(): number {
    return this.connections.filter(({ client }) => client.ended === 'refused').length
  }

  protected make(host: SimulatedHost): RawProcess {
    return new RawProcess(this.network, this.kernels, host, this.random, this.connections, true)
  }
}
