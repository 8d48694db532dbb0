/** Systems of processes with a channel of sockets between each two. */
import { openSimulatedPair, type SimulatedHost, SimulatedKernels } from '../../nic/simulated/index.ts'
import type { ChannelProcess } from './channel-process.ts'
import { QUEUE_SIZE, World } from './world.ts'

const DIAL_MS_MAX = 10_000

export abstract class ChannelWorld<C, P extends ChannelProcess<C>> extends World<P> {
  protected readonly connections: C[] = []

  /** A process begins on a new host. */
  protected abstract make(host: SimulatedHost): P

  async open(host: SimulatedHost): Promise<P> {
    // In place of the endpoints' listener: `connect` attaches both ends.
    const process = this.make(host)
    this.kernels.listen(host, () => {})
    return process
  }

  /** One channel for both directions. A process that is gone, or cannot be reached in time, gets none. */
  connect(from: P, to: P): void {
    if (from.number < to.number) return
    const dialled = this.kernels.connect(from.host, SimulatedKernels.addressOf(to.host), DIAL_MS_MAX)
    this.watch(
      dialled.then(
        near => {
          if (!from.isAlive || !to.isAlive) return near.destroy()
          const [nearEnd, farEnd] = openSimulatedPair(this.network, from.host, to.host, QUEUE_SIZE)
          const transcript = Buffer.from(this.network.newIdentity())
          const { other: far } = near
          const channel = from.attach(nearEnd, to, transcript, () => near.destroy())
          near.on('close', () => channel.handlePeerGone())
          to.host.post(0, () => {
            const farChannel = to.attach(farEnd, from, transcript, () => far.destroy())
            far.on('close', () => farChannel.handlePeerGone())
          })
        },
        () => {},
      ),
    )
  }

  forget(process: P): void {
    process.isOver = true
  }

  check(): void {
    for (const player of this.players) player.check()
  }

  override settleDown(): void {
    for (const player of this.players) player.settleDown()
  }

  findUnfinished(): string | undefined {
    this.settleDown()
    for (const player of this.players) {
      const why = player.findUnfinished()
      if (why !== undefined) return why
    }
    return undefined
  }
}
