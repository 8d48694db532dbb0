/** Systems of sockets: bytes arrive in order, once and whole, and nothing waits or is held for ever. */
import { openSimulatedPair, type SimulatedHost, SimulatedKernels } from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'
import type { Connection } from './socket-end.ts'
import { SocketProcess } from './socket-process.ts'
import { QUEUE_SIZE, World } from './world.ts'

const DIAL_MS_MAX = 10_000

export class SocketWorld extends World<SocketProcess> {
  readonly #connections: Connection[] = []

  /** Connections of which one end has seen the end of the other. */
  get finished(): number {
    return this.#connections.filter(({ client, server }) => client.ended ?? server.ended).length
  }

  get returned(): number {
    return this.#connections.filter(({ client }) => client.ended === 'refused').length
  }

  protected async open(host: SimulatedHost): Promise<SocketProcess> {
    const process = new SocketProcess(this.network, this.kernels, host, this.random, this.#connections)
    // In place of the endpoints' listener: `connect` attaches both ends.
    this.kernels.listen(host, () => {})
    return process
  }

  /** One channel for both directions. A process that is gone, or cannot be reached in time, gets none. */
  protected connect(from: SocketProcess, to: SocketProcess): void {
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

  protected forget(process: SocketProcess): void {
    process.isOver = true
  }

  protected check(): void {
    for (const { ends, share } of this.players) {
      for (const end of ends) end.check()
      if (share.bytes < 0) throw new Broken(`${share.bytes} bytes are kept`)
    }
  }

  /** Each program reads all there is. */
  protected override settleDown(): void {
    for (const { ends, share } of this.players) {
      share.isOver = false
      for (const end of ends) end.setReading(true)
    }
  }

  protected findUnfinished(): string | undefined {
    this.settleDown()
    for (const { ends } of this.players) {
      for (const end of ends) {
        const why = end.findUnfinished()
        if (why !== undefined) return why
      }
    }
    return undefined
  }
}
