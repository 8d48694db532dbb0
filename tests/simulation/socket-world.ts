/** Systems of sockets: bytes arrive in order, once and whole, and nothing waits or is held for ever. */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { ChannelWorld } from './channel-world.ts'
import type { Connection } from './socket-end.ts'
import { SocketProcess } from './socket-process.ts'

export class SocketWorld extends ChannelWorld<Connection, SocketProcess> {
  /** Connections of which one end has seen the end of the other. */
  get finished(): number {
    return this.connections.filter(({ client, server }) => client.ended ?? server.ended).length
  }

  get returned(): number {
    return this.connections.filter(({ client }) => client.ended === 'refused').length
  }

  protected make(host: SimulatedHost): SocketProcess {
    return new SocketProcess(this.network, this.kernels, host, this.random, this.connections)
  }
}
